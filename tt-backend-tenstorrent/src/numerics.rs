//! The exact kernels as functions over plain slices: nothing to open, nothing in tiles. They are the
//! ones that the device model runs, so whoever has another model of the card can hold it against them.
//!
//! A destination is an f32; one of 16 bits keeps a bf16 in it.

use crate::bridge::ffi;
use crate::session::{Destination, Fidelity, Numerics, SessionOptions};
use half::bf16;
use half::slice::HalfFloatSliceExt;

/// Which arithmetic a function uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arithmetic {
    /// The matrix unit's, or f32.
    pub numerics: Numerics,
    /// Fidelity phases of the matrix unit.
    pub fidelity: Fidelity,
    /// Destination of the matrix unit.
    pub dest: Destination,
}

impl Arithmetic {
    /// The matrix unit's at that fidelity and destination.
    pub fn tensix(fidelity: Fidelity, dest: Destination) -> Self {
        Self { numerics: Numerics::Tensix, fidelity, dest }
    }

    /// f32.
    pub fn fast() -> Self {
        Self { numerics: Numerics::Fast, fidelity: Fidelity::HiFi4, dest: Destination::F32 }
    }

    fn for_bridge(self) -> ffi::DeviceOptions {
        let Self { numerics, fidelity, dest } = self;
        SessionOptions { numerics, fidelity, dest, ..SessionOptions::default() }.for_bridge()
    }
}

/// Slices whose lengths do not go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected {what} of {expected} elements, found {found}")]
pub struct SliceError {
    /// Which slice.
    pub what: &'static str,
    /// The length that the others ask for.
    pub expected: usize,
    /// Its length.
    pub found: usize,
}

fn expect(what: &'static str, found: usize, expected: usize) -> Result<(), SliceError> {
    if found == expected { Ok(()) } else { Err(SliceError { what, expected, found }) }
}

/// Sizes of a product `(m, k) (n, k)^T`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatmulDims {
    /// Rows of the activations.
    pub m: u32,
    /// The common size.
    pub k: u32,
    /// Rows of the weights, columns of the result.
    pub n: u32,
}

impl MatmulDims {
    fn check(self, x: usize, w: usize, dest: usize) -> Result<(), SliceError> {
        let size = |a: u32, b: u32| a as usize * b as usize;
        expect("x", x, size(self.m, self.k))?;
        expect("w", w, size(self.n, self.k))?;
        expect("dest", dest, size(self.m, self.n))
    }
}

/// One step of the matrix unit (MVMUL) in fidelity phase `phase`, 0 to 3: 16 products of weights
/// (SrcA) and activations (SrcB), added to a destination.
pub fn mvmul(weights: &[bf16; 16], activations: &[bf16; 16], dest: f32, phase: u8, kind: Destination) -> f32 {
    f32::from_bits(ffi::plain_mvmul(
        weights.reinterpret_cast(),
        activations.reinterpret_cast(),
        dest.to_bits(),
        phase,
        kind == Destination::F32,
    ))
}

/// The destinations after `x w^T`, `x` of `(m, k)` and `w` of `(n, k)`, both row-major.
pub fn matmul(
    arithmetic: Arithmetic,
    dims: MatmulDims,
    x: &[bf16],
    w: &[bf16],
    dest: &mut [f32],
) -> Result<(), SliceError> {
    dims.check(x.len(), w.len(), dest.len())?;
    let options = arithmetic.for_bridge();
    ffi::plain_matmul(&options, dims.m, dims.k, dims.n, x.reinterpret_cast(), w.reinterpret_cast(), dest);
    Ok(())
}

/// [`matmul`] by the scalar kernel, which defines what the vectorised ones must give.
pub fn matmul_scalar(
    arithmetic: Arithmetic,
    dims: MatmulDims,
    x: &[bf16],
    w: &[bf16],
    dest: &mut [f32],
) -> Result<(), SliceError> {
    dims.check(x.len(), w.len(), dest.len())?;
    let options = arithmetic.for_bridge();
    ffi::plain_matmul_scalar(
        &options,
        dims.m,
        dims.k,
        dims.n,
        x.reinterpret_cast(),
        w.reinterpret_cast(),
        dest,
    );
    Ok(())
}

/// `dest += a b`, element by element, `a` as SrcA: the unit's multiply always accumulates.
pub fn multiply(arithmetic: Arithmetic, a: &[bf16], b: &[bf16], dest: &mut [f32]) -> Result<(), SliceError> {
    expect("b", b.len(), a.len())?;
    expect("dest", dest.len(), a.len())?;
    ffi::plain_multiply(&arithmetic.for_bridge(), a.reinterpret_cast(), b.reinterpret_cast(), dest);
    Ok(())
}

/// `dest = a + b`, element by element.
pub fn add(arithmetic: Arithmetic, a: &[bf16], b: &[bf16], dest: &mut [f32]) -> Result<(), SliceError> {
    expect("b", b.len(), a.len())?;
    expect("dest", dest.len(), a.len())?;
    ffi::plain_add(&arithmetic.for_bridge(), a.reinterpret_cast(), b.reinterpret_cast(), dest);
    Ok(())
}

/// The packer: destinations to bf16. From f32 it rounds half away from zero; results below the
/// normal range become +0, NaN infinity of its sign.
pub fn pack(arithmetic: Arithmetic, dest: &[f32], out: &mut [bf16]) -> Result<(), SliceError> {
    expect("out", out.len(), dest.len())?;
    ffi::plain_pack(&arithmetic.for_bridge(), dest, out.reinterpret_cast_mut());
    Ok(())
}

/// The unpacker to bf16 sources: lower mantissa bits dropped, denormals zero.
pub fn unpack_bf16(value: f32) -> bf16 {
    bf16::from_bits((flush(value) >> 16) as u16)
}

/// The unpacker to tf32 sources: lower mantissa bits dropped, denormals zero.
pub fn unpack_tf32(value: f32) -> f32 {
    f32::from_bits(flush(value) & 0xffff_e000)
}

/// The bits, a denormal's replaced by a zero of its sign.
fn flush(value: f32) -> u32 {
    let bits = value.to_bits();
    if bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits }
}

/// Elements of a `(rows, cols)` matrix in tiles of 32x32, padding counted.
pub fn tiled_len(rows: u32, cols: u32) -> usize {
    rows.div_ceil(32) as usize * cols.div_ceil(32) as usize * 1024
}

/// Row-major bf16 bytes, at any address, to tiles; padding in `tiles` is left as it is.
pub fn tilize(rows: u32, cols: u32, bytes: &[u8], tiles: &mut [bf16]) -> Result<(), SliceError> {
    expect("bytes", bytes.len(), rows as usize * cols as usize * 2)?;
    expect("tiles", tiles.len(), tiled_len(rows, cols))?;
    ffi::plain_tilize(rows, cols, bytes, tiles.reinterpret_cast_mut());
    Ok(())
}

/// Tiles back to row-major bytes.
pub fn untilize(rows: u32, cols: u32, tiles: &[bf16], bytes: &mut [u8]) -> Result<(), SliceError> {
    expect("tiles", tiles.len(), tiled_len(rows, cols))?;
    expect("bytes", bytes.len(), rows as usize * cols as usize * 2)?;
    ffi::plain_untilize(rows, cols, tiles.reinterpret_cast(), bytes);
    Ok(())
}

/// What [`tilize`] replaced, to be measured against it: every element through a run-time dtype
/// dispatch into a float vector, its place from run-time shape arithmetic. Returns the bytes of bf16
/// that went through floats.
pub fn tilize_element_by_element(
    rows: u32,
    cols: u32,
    bytes: &[u8],
    tiles: &mut [bf16],
) -> Result<u64, SliceError> {
    expect("bytes", bytes.len(), rows as usize * cols as usize * 2)?;
    expect("tiles", tiles.len(), tiled_len(rows, cols))?;
    Ok(ffi::plain_stage_element_by_element(rows, cols, 0, bytes, tiles.reinterpret_cast_mut()))
}
