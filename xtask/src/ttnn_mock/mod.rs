//! `cargo xtask ttnn-mock`: the ttnn driver on the real library, without a card.
//!
//! The library's mock runs all of the host's part of a call: checks, the program's hash and its cache,
//! allocation, run-time arguments, the enqueue. It runs no kernel and moves no bytes, so the times are
//! lower bounds of a host's and the values that come back mean nothing. They are not compared.

mod home;
mod measure;
mod table;

use clap::Parser;
use std::path::{Path, PathBuf};
use std::process::Command;
use tt_backend_tenstorrent::ttnn;

/// What `cargo xtask ttnn-mock` is asked for.
#[derive(Debug, Clone, Parser)]
pub struct Arguments {
    /// The unpacked wheel of ttnn: the folder with `ttnn` and `ttnn.libs` in it.
    #[arg(long)]
    wheel: PathBuf,
    /// Where to lay out what the mock needs; a temporary folder when not given.
    #[arg(long)]
    home: Option<PathBuf>,
    /// A compiler for rv32 programs that nothing runs; Debian's gcc-riscv64-unknown-elf.
    #[arg(long, default_value = "riscv64-unknown-elf-gcc")]
    riscv_gcc: String,
    /// Checkpoints to run, beside `goldens/tiny`.
    #[arg(long = "checkpoint")]
    checkpoints: Vec<PathBuf>,
    /// Decode steps.
    #[arg(long, default_value_t = 64)]
    steps: usize,
    /// Tokens of the prefill.
    #[arg(long, default_value_t = 45)]
    prompt: usize,
    /// Leave out the comparison with other ways of doing the step.
    #[arg(long)]
    only_driver: bool,
    /// The folder is laid out and the environment set: measure.
    #[arg(long, hide = true)]
    ready: bool,
}

/// Why the mock could not be run.
#[derive(Debug, thiserror::Error)]
pub enum MockError {
    /// The program was built without the driver.
    #[error("{}", ttnn::MISSING)]
    NoDriver,
    /// The folder is no unpacked wheel.
    #[error("expected an unpacked ttnn wheel with ttnn/build/lib/_ttnncpp.so and precompiled firmware, found {}", folder.display())]
    Wheel {
        /// The folder.
        folder: PathBuf,
    },
    /// No program could be compiled for the mock.
    #[error("cannot compile a stand-in program with {name}: {reason}")]
    Compiler {
        /// The compiler.
        name: String,
        /// What it said.
        reason: String,
    },
    /// A file could not be read or written.
    #[error("{}: {reason}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// A model could not be run.
    #[error("{what}: {reason}")]
    Run {
        /// Which model, and which way of running it.
        what: String,
        /// What failed.
        reason: String,
    },
}

impl MockError {
    fn file(file: &Path, error: std::io::Error) -> Self {
        Self::File { file: file.to_owned(), reason: error.to_string() }
    }
}

/// Lays out the mock's folder, then measures in a process of its own: the library reads its environment
/// when it is loaded. Whether everything that must hold did.
pub fn command(arguments: &Arguments) -> Result<bool, MockError> {
    if !ttnn::AVAILABLE {
        return Err(MockError::NoDriver);
    }
    if arguments.ready {
        return measure::run(arguments);
    }
    let temporary =
        tempfile::tempdir().map_err(|error| MockError::file(Path::new("a temporary folder"), error))?;
    let folder = arguments.home.clone().unwrap_or_else(|| temporary.path().join("tt-metal"));
    home::prepare(&folder, &arguments.wheel, &arguments.riscv_gcc)?;
    let program =
        std::env::current_exe().map_err(|error| MockError::file(Path::new("this program"), error))?;
    let status = Command::new(&program)
        .args(std::env::args_os().skip(1))
        .arg("--ready")
        .env("TT_METAL_HOME", &folder)
        .env("TT_METAL_RUNTIME_ROOT", &folder)
        .env("TT_METAL_CACHE", folder.join("cache"))
        .env("TT_METAL_LOGS_PATH", folder.join("logs"))
        .env("TT_METAL_LOGGER_LEVEL", "FATAL")
        .status()
        .map_err(|error| MockError::file(&program, error))?;
    Ok(status.success())
}
