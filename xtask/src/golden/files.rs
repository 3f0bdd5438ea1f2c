//! A golden's files: bytes, checksums, tensors.

use super::error::GoldenError;
use half::bf16;
use safetensors::{Dtype, SafeTensors};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;

pub(super) fn read(path: &Path) -> Result<Vec<u8>, GoldenError> {
    fs::read(path).map_err(|source| GoldenError::Read { path: path.to_owned(), source })
}

pub(super) fn check_sum(path: &Path, data: &[u8], expected: &str) -> Result<(), GoldenError> {
    let found = hex(&Sha256::digest(data));
    if found == expected {
        return Ok(());
    }
    Err(GoldenError::Checksum { path: path.to_owned(), expected: expected.to_owned(), found })
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The tensors of `golden.safetensors`. Errors are what was expected and found, without the file.
pub(super) struct Tensors<'d> {
    file: SafeTensors<'d>,
    /// Cells of the golden: what [`rows`](Self::rows) cuts a tensor into.
    cells: usize,
}

impl<'d> Tensors<'d> {
    pub(super) fn parse(data: &'d [u8], cells: usize) -> Result<Self, String> {
        Ok(Self { file: SafeTensors::deserialize(data).map_err(|e| e.to_string())?, cells })
    }

    pub(super) fn shape(&self, name: &str) -> Result<Vec<usize>, String> {
        Ok(self.file.tensor(name).map_err(|e| format!("{name}: {e}"))?.shape().to_vec())
    }

    /// A tensor of F32 or BF16 as f32, exactly.
    pub(super) fn floats(&self, name: &str) -> Result<Vec<f32>, String> {
        let tensor = self.file.tensor(name).map_err(|e| format!("{name}: {e}"))?;
        match tensor.dtype() {
            Dtype::F32 => Ok(words(tensor.data()).map(f32::from_le_bytes).collect()),
            Dtype::BF16 => Ok(words(tensor.data()).map(|b| bf16::from_le_bytes(b).to_f32()).collect()),
            other => Err(format!("{name}: expected F32 or BF16, found {other:?}")),
        }
    }

    /// A tensor of non-negative I32.
    fn integers(&self, name: &str) -> Result<Vec<u32>, String> {
        let tensor = self.file.tensor(name).map_err(|e| format!("{name}: {e}"))?;
        if tensor.dtype() != Dtype::I32 {
            return Err(format!("{name}: expected I32, found {:?}", tensor.dtype()));
        }
        let ids = words(tensor.data()).map(i32::from_le_bytes);
        ids.map(|id| u32::try_from(id).map_err(|_| format!("{name}: negative id {id}"))).collect()
    }

    /// A tensor of F32 or BF16 as a row for each cell.
    pub(super) fn rows(&self, name: &str) -> Result<Vec<Vec<f32>>, String> {
        self.cut(name, self.floats(name)?)
    }

    /// A tensor of ids as a row for each cell.
    pub(super) fn id_rows(&self, name: &str) -> Result<Vec<Vec<u32>>, String> {
        self.cut(name, self.integers(name)?)
    }

    fn cut<T: Clone>(&self, name: &str, values: Vec<T>) -> Result<Vec<Vec<T>>, String> {
        let cells = self.cells;
        if cells == 0 || values.is_empty() || !values.len().is_multiple_of(cells) {
            return Err(format!("{name}: expected {cells} rows, found {} values", values.len()));
        }
        Ok(values.chunks(values.len() / cells).map(<[T]>::to_vec).collect())
    }
}

fn words<const N: usize>(data: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    data.as_chunks::<N>().0.iter().copied()
}
