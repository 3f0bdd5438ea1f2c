//! The files of a checkpoint: found and mapped.

use super::error::CheckpointError;
use super::header::parse;
use super::shards::{INDEX, read_shards};
use memmap2::Mmap;
use safetensors::Dtype;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tt_dsl::HostBytes;

const WEIGHTS: &str = "model.safetensors";
const CONFIG: &str = "config.json";
const TOKENIZER: &str = "tokenizer.json";

/// A tensor as it lies in a file.
#[derive(Clone)]
pub struct StoredTensor {
    /// Its dtype there.
    pub dtype: Dtype,
    /// Its shape there, outermost first.
    pub shape: Vec<usize>,
    /// Its bytes, shared with the file.
    pub bytes: HostBytes,
    /// The file's name.
    pub file: Arc<str>,
}

/// A checkpoint that is part of the program.
#[derive(Debug, Clone, Copy)]
pub struct Embedded {
    /// `config.json`.
    pub config: &'static [u8],
    /// `model.safetensors`.
    pub weights: &'static [u8],
    /// `tokenizer.json`.
    pub tokenizer: &'static [u8],
}

/// Where the files are.
enum Origin {
    Directory(PathBuf),
    Embedded(Embedded),
    Memory { place: String, files: BTreeMap<&'static str, Vec<u8>> },
}

/// A checkpoint whose files were found and whose headers were parsed. Its tensors are mapped, not
/// read.
pub struct Checkpoint {
    origin: Origin,
    tensors: BTreeMap<String, StoredTensor>,
}

impl Checkpoint {
    /// Opens `model.safetensors`, or the shards that `model.safetensors.index.json` names.
    ///
    /// The files are mapped: they must not be shortened or written to while the checkpoint or a
    /// tensor on a backend that keeps its bytes is alive.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, CheckpointError> {
        let dir = dir.as_ref();
        let found = match fs::metadata(dir) {
            Ok(metadata) if metadata.is_dir() => None,
            Ok(_) => Some("a file"),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some("no such directory"),
            Err(error) => return Err(CheckpointError::io(&dir.display().to_string(), error)),
        };
        if let Some(found) = found {
            return Err(CheckpointError::Directory { path: dir.to_owned(), found });
        }
        let tensors = if dir.join(WEIGHTS).exists() {
            read_file(dir, WEIGHTS)?
        } else if dir.join(INDEX).exists() {
            read_shards(dir)?
        } else {
            return Err(CheckpointError::NoWeights { path: dir.to_owned() });
        };
        Ok(Self { origin: Origin::Directory(dir.to_owned()), tensors })
    }

    /// Opens a checkpoint that is part of the program.
    pub fn embedded(files: Embedded) -> Result<Self, CheckpointError> {
        let origin = Origin::Embedded(files);
        let tensors = parse(Arc::new(files.weights), &origin.place(WEIGHTS), WEIGHTS)?;
        Ok(Self { origin, tensors })
    }

    /// A checkpoint in memory: its tensors by their full names, and its other files (`config.json` and
    /// what else there is) by theirs. Messages call it `place`.
    pub fn in_memory(
        place: String,
        files: BTreeMap<&'static str, Vec<u8>>,
        tensors: BTreeMap<String, StoredTensor>,
    ) -> Self {
        Self { origin: Origin::Memory { place, files }, tensors }
    }

    /// Every tensor of every file, by its full name.
    pub fn tensors(&self) -> &BTreeMap<String, StoredTensor> {
        &self.tensors
    }

    /// The directory, or a phrase for a checkpoint that is part of the program.
    pub fn place(&self) -> String {
        match &self.origin {
            Origin::Directory(dir) => dir.display().to_string(),
            Origin::Embedded(_) => "built-in checkpoint".to_owned(),
            Origin::Memory { place, .. } => place.clone(),
        }
    }

    /// Where `config.json` is, and its bytes.
    pub fn config_bytes(&self) -> Result<(String, Cow<'static, [u8]>), CheckpointError> {
        self.side_file(CONFIG, |files| files.config)
    }

    /// Where `tokenizer.json` is, and its bytes.
    pub fn tokenizer_bytes(&self) -> Result<(String, Cow<'static, [u8]>), CheckpointError> {
        self.side_file(TOKENIZER, |files| files.tokenizer)
    }

    /// Where the file of this name is, and its bytes; none if there is no such file. A checkpoint that
    /// is part of the program has none.
    pub fn optional_file(&self, name: &str) -> Result<Option<(String, Vec<u8>)>, CheckpointError> {
        let dir = match &self.origin {
            Origin::Directory(dir) => dir,
            Origin::Embedded(_) => return Ok(None),
            Origin::Memory { files, .. } => {
                return Ok(files.get(name).map(|bytes| (self.origin.place(name), bytes.clone())));
            }
        };
        match fs::read(dir.join(name)) {
            Ok(bytes) => Ok(Some((self.origin.place(name), bytes))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(CheckpointError::io(&self.origin.place(name), error)),
        }
    }

    fn side_file(
        &self,
        name: &str,
        part: impl Fn(&Embedded) -> &'static [u8],
    ) -> Result<(String, Cow<'static, [u8]>), CheckpointError> {
        let place = self.origin.place(name);
        let bytes = match &self.origin {
            Origin::Embedded(files) => Cow::Borrowed(part(files)),
            Origin::Memory { files, .. } => match files.get(name) {
                Some(bytes) => Cow::Owned(bytes.clone()),
                None => return Err(CheckpointError::io(&place, io::ErrorKind::NotFound.into())),
            },
            Origin::Directory(dir) => match fs::read(dir.join(name)) {
                Ok(bytes) => Cow::Owned(bytes),
                Err(error) => return Err(CheckpointError::io(&place, error)),
            },
        };
        Ok((place, bytes))
    }
}

impl Origin {
    fn place(&self, name: &str) -> String {
        match self {
            Self::Directory(dir) => dir.join(name).display().to_string(),
            Self::Embedded(_) => format!("built-in {name}"),
            Self::Memory { place, .. } => format!("{name} of {place}"),
        }
    }
}

/// Maps one file and parses its header.
pub(super) fn read_file(dir: &Path, name: &str) -> Result<BTreeMap<String, StoredTensor>, CheckpointError> {
    let path = dir.join(name);
    let place = path.display().to_string();
    let map =
        File::open(&path).and_then(|file| map(&file)).map_err(|error| CheckpointError::io(&place, error))?;
    parse(Arc::new(map), &place, name)
}

#[expect(unsafe_code, reason = "mapping a file is unsafe by its nature; see the comment inside")]
fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the map is read-only and private to this process. That nobody shortens or rewrites
    // a checkpoint in use is the contract of `Checkpoint::open`, as it is of every reader of
    // safetensors files; the alternative, a copy of the weights, doubles the memory of a load.
    let map = unsafe { Mmap::map(file) }?;
    // A decode step walks over all of the file, and in pages of 4 KiB the walks of the page tables cost
    // a third of the bandwidth. Where the system has no huge pages for files, the file is mapped all the
    // same.
    #[cfg(target_os = "linux")]
    let _ = map.advise(memmap2::Advice::HugePage);
    Ok(map)
}
