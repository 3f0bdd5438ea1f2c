//! The exact kernels against the card's description, bit for bit.

use crate::card;
use crate::random::cases_of;
use half::bf16;
use proptest::collection::vec;
use proptest::prelude::*;
use tt_backend_tenstorrent::numerics::{self, Arithmetic, MatmulDims};
use tt_backend_tenstorrent::{Destination, Fidelity};

const FIDELITIES: [Fidelity; 4] = [Fidelity::LoFi, Fidelity::HiFi2, Fidelity::HiFi3, Fidelity::HiFi4];
const DESTINATIONS: [Destination; 2] = [Destination::F32, Destination::Bits16];

/// bf16 of all kinds: near each other (so that sums cancel and align), anywhere, and special.
fn any_bits() -> impl Strategy<Value = u16> {
    prop_oneof![
        8 => (any::<bool>(), 120u16..135, 0u16..128).prop_map(|(s, e, m)| u16::from(s) << 15 | e << 7 | m),
        3 => any::<u16>(),
        1 => prop::sample::select(vec![0, 0x8000, 1, 0x807f, 0x80, 0x8080, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0x3f80]),
    ]
}

/// Destinations of all kinds.
fn any_dest(kind: Destination) -> impl Strategy<Value = u32> {
    prop_oneof![
        4 => (any::<bool>(), 110u32..150, 0u32..1 << 23).prop_map(|(s, e, m)| u32::from(s) << 31 | e << 23 | m),
        2 => any::<u32>(),
        1 => Just(0),
    ]
    .prop_map(move |bits| if kind == Destination::F32 { bits } else { bits & 0xffff_0000 })
}

fn halves(bits: &[u16]) -> Vec<bf16> {
    bits.iter().copied().map(bf16::from_bits).collect()
}

fn column<T>(cells: &[T], of: impl Fn(&T) -> u16) -> Vec<bf16> {
    cells.iter().map(|cell| bf16::from_bits(of(cell))).collect()
}

fn arithmetic() -> impl Strategy<Value = (Fidelity, Destination)> {
    (prop::sample::select(&FIDELITIES[..]), prop::sample::select(&DESTINATIONS[..]))
}

/// Numbers of inputs: few, and about one and two blocks of the fast kernel.
fn blocks_and_rest() -> impl Strategy<Value = u32> {
    prop_oneof![3 => 1u32..100, 1 => 250u32..270, 1 => 505u32..520]
}

fn is_f32(kind: Destination) -> bool {
    kind == Destination::F32
}

proptest! {
    #![proptest_config(cases_of(4000))]

    #[test]
    fn a_step_of_the_matrix_unit(
        (a, b) in (vec(any_bits(), 16), vec(any_bits(), 16)),
        phase in 0u8..4,
        (kind, dest) in prop::sample::select(&DESTINATIONS[..]).prop_flat_map(|kind| (Just(kind), any_dest(kind))),
    ) {
        let expected = card::mvmul(&a, &b, dest, phase, is_f32(kind));
        let (a, b): ([bf16; 16], [bf16; 16]) = (halves(&a).try_into().unwrap(), halves(&b).try_into().unwrap());
        let found = numerics::mvmul(&a, &b, f32::from_bits(dest), phase, kind).to_bits();
        prop_assert_eq!(found, expected, "{:08x} for {:08x}", found, expected);
    }

    #[test]
    fn an_element_wise_product(
        cells in vec((any_bits(), any_bits(), any_dest(Destination::F32)), 1..20),
        (fidelity, kind) in arithmetic(),
    ) {
        let mask = if is_f32(kind) { u32::MAX } else { 0xffff_0000 };
        let (a, b) = (column(&cells, |c| c.0), column(&cells, |c| c.1));
        let mut found: Vec<f32> = cells.iter().map(|c| f32::from_bits(c.2 & mask)).collect();
        numerics::multiply(Arithmetic::tensix(fidelity, kind), &a, &b, &mut found).unwrap();
        for ((a, b, dest), found) in cells.iter().zip(found) {
            let expected = card::multiply(*a, *b, dest & mask, fidelity.phases(), is_f32(kind));
            prop_assert_eq!(found.to_bits(), expected);
        }
    }

    #[test]
    fn an_element_wise_sum(
        cells in vec((any_bits(), any_bits()), 1..20),
        kind in prop::sample::select(&DESTINATIONS[..]),
    ) {
        let mut found = vec![f32::NAN; cells.len()];
        let (a, b) = (column(&cells, |c| c.0), column(&cells, |c| c.1));
        numerics::add(Arithmetic::tensix(Fidelity::HiFi4, kind), &a, &b, &mut found).unwrap();
        for ((a, b), found) in cells.iter().zip(found) {
            prop_assert_eq!(found.to_bits(), card::add(*a, *b, is_f32(kind)));
        }
    }

    #[test]
    fn the_packer(
        (kind, dest) in prop::sample::select(&DESTINATIONS[..]).prop_flat_map(|kind| (Just(kind), any_dest(kind))),
    ) {
        let mut found = [bf16::ONE];
        numerics::pack(Arithmetic::tensix(Fidelity::HiFi4, kind), &[f32::from_bits(dest)], &mut found).unwrap();
        prop_assert_eq!(found[0].to_bits(), card::pack(dest, is_f32(kind)));
    }
}

proptest! {
    #![proptest_config(cases_of(300))]

    /// The vectorised kernel, the scalar kernel and the description, over sizes that are not whole
    /// tiles.
    #[test]
    fn a_matrix_product(
        (fidelity, kind) in arithmetic(),
        (m, k, n, x, w) in (1u32..4, 1u32..100, 1u32..40).prop_flat_map(|(m, k, n)| {
            let (x, w) = ((m * k) as usize, (n * k) as usize);
            (Just(m), Just(k), Just(n), vec(any_bits(), x), vec(any_bits(), w))
        }),
    ) {
        let dims = MatmulDims { m, k, n };
        let how = Arithmetic::tensix(fidelity, kind);
        let mut found = vec![f32::NAN; (m * n) as usize];
        let mut scalar = found.clone();
        numerics::matmul(how, dims, &halves(&x), &halves(&w), &mut found).unwrap();
        numerics::matmul_scalar(how, dims, &halves(&x), &halves(&w), &mut scalar).unwrap();
        let k = k as usize;
        for (i, (found, scalar)) in found.iter().zip(&scalar).enumerate() {
            let (row, col) = (i / n as usize, i % n as usize);
            let expected =
                card::dot(&w[col * k..(col + 1) * k], &x[row * k..(row + 1) * k], fidelity.phases(), is_f32(kind));
            prop_assert_eq!(scalar.to_bits(), expected, "scalar, row {}, column {}", row, col);
            prop_assert_eq!(found.to_bits(), expected, "vectorised, row {}, column {}", row, col);
        }
    }

    /// `fast` adds the products in the order of k, one after the other, also where the kernel takes
    /// rows and inputs in blocks.
    #[test]
    fn a_fast_matrix_product(
        (m, k, n, x, w) in (1u32..16, blocks_and_rest(), 1u32..80).prop_flat_map(|(m, k, n)| {
            let (x, w) = ((m * k) as usize, (n * k) as usize);
            (Just(m), Just(k), Just(n), vec(-8.0f32..8.0, x), vec(-8.0f32..8.0, w))
        }),
    ) {
        let halves = |v: &[f32]| v.iter().copied().map(bf16::from_f32).collect::<Vec<_>>();
        let (x, w) = (halves(&x), halves(&w));
        let mut found = vec![f32::NAN; (m * n) as usize];
        numerics::matmul(Arithmetic::fast(), MatmulDims { m, k, n }, &x, &w, &mut found).unwrap();
        let k = k as usize;
        for (i, found) in found.iter().enumerate() {
            let (row, col) = (i / n as usize, i % n as usize);
            let pairs = x[row * k..(row + 1) * k].iter().zip(&w[col * k..(col + 1) * k]);
            let expected = pairs.fold(0.0f32, |sum, (x, w)| sum + x.to_f32() * w.to_f32());
            prop_assert_eq!(*found, expected);
        }
    }

    #[test]
    fn tiles_and_back((rows, cols, bytes) in (1u32..70, 1u32..70).prop_flat_map(|(r, c)| {
        (Just(r), Just(c), vec(any::<u8>(), (r * c * 2) as usize))
    })) {
        let mut tiles = vec![bf16::from_bits(0xabcd); numerics::tiled_len(rows, cols)];
        let mut back = vec![0u8; bytes.len()];
        numerics::tilize(rows, cols, &bytes, &mut tiles).unwrap();
        numerics::untilize(rows, cols, &tiles, &mut back).unwrap();
        prop_assert_eq!(&back, &bytes);
        // The place of an element, by the definition of tile and face.
        let columns = cols.div_ceil(32);
        for (row, col) in [(0, 0), (rows - 1, cols - 1), (rows / 2, cols / 3)] {
            let tile = row / 32 * columns + col / 32;
            let face = row % 32 / 16 * 2 + col % 32 / 16;
            let at = tile * 1024 + face * 256 + row % 16 * 16 + col % 16;
            let byte = ((row * cols + col) * 2) as usize;
            let expected = u16::from_le_bytes([bytes[byte], bytes[byte + 1]]);
            prop_assert_eq!(tiles[at as usize].to_bits(), expected);
        }
    }
}

#[test]
fn the_packer_at_its_edges() {
    let pack = |bits: u32, kind| {
        let mut out = [bf16::ONE];
        let how = Arithmetic::tensix(Fidelity::HiFi4, kind);
        numerics::pack(how, &[f32::from_bits(bits)], &mut out).unwrap();
        out[0].to_bits()
    };
    let cases = [
        (0x3f80_7fff, 0x3f80, "below a half"),
        (0x3f80_8000, 0x3f81, "a half, away from zero where to even would stay"),
        (0xbf80_8000, 0xbf81, "a half, away from zero on the negative side"),
        (0x3f81_8000, 0x3f82, "a half above an odd one"),
        (0x7f7f_ffff, 0x7f80, "the largest f32 becomes infinity"),
        (0x7f80_0000, 0x7f80, "infinity"),
        (0x7fc0_0000, 0x7f80, "NaN becomes infinity"),
        (0xffc0_0001, 0xff80, "NaN keeps its sign"),
        (0x0040_0000, 0, "a denormal"),
        (0x8040_0000, 0, "a negative denormal becomes +0"),
        (0x8000_0000, 0, "-0 becomes +0"),
        (0x007f_8000, 0x0080, "a denormal that rounds up to the smallest normal one"),
    ];
    for (bits, expected, what) in cases {
        assert_eq!(pack(bits, Destination::F32), expected, "{what}");
    }
    assert_eq!(pack(0x3f80_0000, Destination::Bits16), 0x3f80);
    assert_eq!(pack(0x7fc0_0000, Destination::Bits16), 0x7f80);
    assert_eq!(pack(0x8040_0000, Destination::Bits16), 0);
}

#[test]
fn the_unpacker_drops_bits_and_denormals() {
    let bits = |x: u32| numerics::unpack_bf16(f32::from_bits(x)).to_bits();
    assert_eq!(bits(0x3f80_ffff), 0x3f80, "dropped, not rounded");
    assert_eq!(bits(0xbf81_ffff), 0xbf81);
    assert_eq!(bits(0x007f_ffff), 0);
    assert_eq!(bits(0x807f_ffff), 0x8000);
    assert_eq!(bits(0x7f80_0000), 0x7f80);
    assert_eq!(numerics::unpack_tf32(f32::from_bits(0x3f80_1fff)).to_bits(), 0x3f80_0000);
    assert_eq!(numerics::unpack_tf32(f32::from_bits(0x3f80_2fff)).to_bits(), 0x3f80_2000);
    assert_eq!(numerics::unpack_tf32(f32::from_bits(0x0000_2000)), 0.0);
}

#[test]
fn lengths_are_checked() {
    let error = numerics::matmul(
        Arithmetic::fast(),
        MatmulDims { m: 1, k: 4, n: 2 },
        &[bf16::ONE; 4],
        &[bf16::ONE; 7],
        &mut [0.0; 2],
    );
    assert_eq!(error.unwrap_err().to_string(), "expected w of 8 elements, found 7");
}
