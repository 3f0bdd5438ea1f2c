//! Copies of the tiny checkpoint, to be spoiled.

use safetensors::Dtype;
use safetensors::tensor::{SafeTensors, TensorView, serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// The committed tiny checkpoint.
pub(crate) const TINY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../goldens/tiny");

/// A tensor to be written.
#[derive(Clone)]
pub(crate) struct Stored {
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<usize>,
    pub(crate) bytes: Vec<u8>,
}

/// Tensors by name.
pub(crate) type Tensors = BTreeMap<String, Stored>;

/// A copy of the tiny checkpoint in a directory of its own, which goes with it.
pub(crate) struct Copy(PathBuf);

impl Copy {
    pub(crate) fn new() -> Self {
        static COPIES: AtomicU32 = AtomicU32::new(0);
        let number = COPIES.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("qwen35-test-{}-{number}", process::id()));
        fs::create_dir_all(&dir).unwrap();
        for name in ["config.json", "model.safetensors", "tokenizer.json"] {
            fs::copy(Path::new(TINY).join(name), dir.join(name)).unwrap();
        }
        Self(dir)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Changes the bytes of a file.
    pub(crate) fn bytes(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let path = self.0.join(name);
        let mut bytes = fs::read(&path).unwrap();
        change(&mut bytes);
        fs::write(path, bytes).unwrap();
    }

    /// Changes a JSON file.
    pub(crate) fn json(&self, name: &str, change: impl FnOnce(&mut Value)) {
        self.bytes(name, |bytes| {
            let mut value = serde_json::from_slice(bytes).unwrap();
            change(&mut value);
            *bytes = serde_json::to_vec(&value).unwrap();
        });
    }

    /// Changes the tensors.
    pub(crate) fn tensors(&self, change: impl FnOnce(&mut Tensors)) {
        self.bytes("model.safetensors", |bytes| {
            let mut tensors = read(bytes);
            change(&mut tensors);
            *bytes = write(&tensors);
        });
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // A directory left behind in the system's place for such is no reason to fail a test.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn read(bytes: &[u8]) -> Tensors {
    let file = SafeTensors::deserialize(bytes).unwrap();
    let tensors = file.iter().map(|(name, tensor)| {
        let (dtype, shape) = (tensor.dtype(), tensor.shape().to_vec());
        (name.to_owned(), Stored { dtype, shape, bytes: tensor.data().to_vec() })
    });
    tensors.collect()
}

/// A safetensors file of the tensors.
pub(crate) fn write(tensors: &Tensors) -> Vec<u8> {
    let views = tensors.iter().map(|(name, stored)| {
        (name, TensorView::new(stored.dtype, stored.shape.clone(), &stored.bytes).unwrap())
    });
    serialize(views, None).unwrap()
}
