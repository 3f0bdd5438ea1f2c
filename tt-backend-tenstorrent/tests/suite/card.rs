//! The card's arithmetic once more, written from its description and from nothing else: every value
//! is an exact integer multiple of a power of two, shifted and rounded as the description says.

/// A term: `(-1)^negative * magnitude`, bit 23 of which weighs `2^(exponent - 127)`.
#[derive(Clone, Copy, Default)]
struct Term {
    negative: bool,
    exponent: i64,
    magnitude: i64,
    group: bool,
}

struct Factor {
    negative: bool,
    exponent: i64,
    mantissa: i64,
}

fn factor(bits: u16) -> Option<Factor> {
    let exponent = i64::from(bits >> 7 & 0xff);
    let mantissa = (0x80 + i64::from(bits & 0x7f)) * 8;
    (exponent != 0).then_some(Factor { negative: bits & 0x8000 != 0, exponent, mantissa })
}

/// The part of a weight's (`SrcA`) and of an activation's (`SrcB`) mantissa that a phase multiplies.
fn parts(a: i64, b: i64, phase: u8) -> (i64, i64) {
    let a = if phase & 1 == 0 { a / 64 } else { a / 2 % 32 };
    let b = if phase & 2 == 0 { b / 16 } else { b % 16 * 8 };
    (a, b)
}

fn product(a: u16, b: u16, phase: u8) -> Option<(bool, i64, i64)> {
    let (a, b) = (factor(a)?, factor(b)?);
    let (x, y) = parts(a.mantissa, b.mantissa, phase);
    let less = 5 * i64::from(phase & 1) + 7 * i64::from(phase >> 1 & 1);
    Some((a.negative != b.negative, a.exponent + b.exponent - 127 - less, x * y))
}

fn half_up(value: i64, by: i64) -> i64 {
    if by == 0 { value } else { (value + (1 << (by - 1))) >> by }
}

fn group(a: &[u16], b: &[u16], phase: u8) -> Term {
    let products: Vec<_> = a.iter().zip(b).map(|(&a, &b)| product(a, b, phase)).collect();
    let exponent = products.iter().flatten().map(|p| p.1).max().unwrap_or(0);
    if exponent <= 0 {
        return Term::default();
    }
    let sum: i64 = products
        .iter()
        .flatten()
        .map(|&(negative, e, magnitude)| {
            let aligned = half_up(magnitude, (exponent - e).min(30));
            if negative { -aligned } else { aligned }
        })
        .sum();
    Term { negative: sum < 0, exponent, magnitude: sum.abs() << 13, group: true }
}

/// Steps 3 and 4 of the description.
fn accumulate(terms: &[Term], dest: u32, f32_dest: bool) -> u32 {
    let exponent = i64::from(dest >> 23 & 0xff);
    let magnitude = if exponent == 0 { 0 } else { 0x80_0000 + i64::from(dest & 0x7f_ffff) };
    let old = Term { negative: dest >> 31 != 0, exponent, magnitude, group: false };
    let all: Vec<Term> = terms.iter().copied().chain([old]).collect();
    let common = all.iter().map(|t| t.exponent).max().unwrap_or(0);
    if common <= 0 {
        return 0;
    }
    let mut sum = 0i64;
    for term in all {
        let less = i64::from(term.group && term.negative);
        let by = common - term.exponent;
        let mut aligned = match by {
            0 => term.magnitude,
            1..=30 => (term.magnitude + (1 << (by - 1)) - less) >> by,
            _ => 0,
        };
        if !f32_dest {
            aligned = (aligned + (1 << 12) - less) >> 13 << 13;
        }
        sum += if term.negative { -aligned } else { aligned };
    }
    if sum == 0 {
        return 0;
    }
    let digits = if f32_dest { 24 } else { 8 };
    let mut value = sum.abs();
    let width = 64 - i64::from(value.leading_zeros());
    let mut exponent = common + width - 24;
    value = if width > digits { half_up(value, width - digits) } else { value << (digits - width) };
    if value >> digits != 0 {
        value >>= 1;
        exponent += 1;
    }
    let sign = if sum < 0 { 0x8000_0000 } else { 0 };
    match exponent {
        ..=0 => 0,
        255.. => sign | 0x7f80_0000,
        _ => sign | (exponent as u32) << 23 | ((value << (24 - digits)) as u32 & 0x7f_ffff),
    }
}

/// 16 products into one destination element, given and returned as f32 bits.
pub(crate) fn mvmul(a: &[u16], b: &[u16], dest: u32, phase: u8, f32_dest: bool) -> u32 {
    accumulate(&[group(&a[..8], &b[..8], phase), group(&a[8..], &b[8..], phase)], dest, f32_dest)
}

/// `x w^T` for one row of `x` and one of `w`: tiles of 32, phases within, faces within those.
pub(crate) fn dot(w: &[u16], x: &[u16], phases: u8, f32_dest: bool) -> u32 {
    let pad = |v: &[u16]| {
        let mut v = v.to_vec();
        v.resize(v.len().next_multiple_of(32), 0);
        v
    };
    let (w, x) = (pad(w), pad(x));
    let mut dest = 0;
    for tile in (0..w.len()).step_by(32) {
        for phase in 0..phases {
            for face in [tile, tile + 16] {
                dest = mvmul(&w[face..face + 16], &x[face..face + 16], dest, phase, f32_dest);
            }
        }
    }
    dest
}

/// An element-wise product in all phases, added to the destination.
pub(crate) fn multiply(a: u16, b: u16, mut dest: u32, phases: u8, f32_dest: bool) -> u32 {
    for phase in 0..phases {
        let term = match product(a, b, phase) {
            Some((negative, exponent, magnitude)) if exponent > 0 => {
                Term { negative, exponent, magnitude: magnitude << 13, group: true }
            }
            _ => Term::default(),
        };
        dest = accumulate(&[term], dest, f32_dest);
    }
    dest
}

/// An element-wise sum.
pub(crate) fn add(a: u16, b: u16, f32_dest: bool) -> u32 {
    let flush = |bits: u16| if bits & 0x7f80 == 0 { 0 } else { bits };
    let (a, b) = (flush(a), flush(b));
    let (a, b) = if a & 0x7fff >= b & 0x7fff { (a, b) } else { (b, a) };
    let Some(large) = factor(a) else { return accumulate(&[], 0, f32_dest) };
    let aligned = factor(b).map_or(0, |small| {
        let by = large.exponent - small.exponent;
        let aligned = if by >= 12 { 0 } else { half_up(small.mantissa, by) };
        if small.negative == large.negative { aligned } else { -aligned }
    });
    let magnitude = (large.mantissa + aligned) << 13;
    accumulate(
        &[Term { negative: large.negative, exponent: large.exponent, magnitude, group: true }],
        0,
        f32_dest,
    )
}

/// The packer.
pub(crate) fn pack(dest: u32, f32_dest: bool) -> u16 {
    let sign = (dest >> 16) as u16 & 0x8000;
    let magnitude = dest & 0x7fff_ffff;
    if magnitude >= 0x7f80_0000 {
        return sign | 0x7f80;
    }
    let rounded = if f32_dest { (magnitude + 0x8000) >> 16 } else { magnitude >> 16 };
    if rounded < 0x80 { 0 } else { sign | rounded as u16 }
}
