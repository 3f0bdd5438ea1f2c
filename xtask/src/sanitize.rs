//! `cargo xtask sanitize`: the Tenstorrent backend's tests with the C++ under AddressSanitizer and
//! UndefinedBehaviorSanitizer.
//!
//! Rust's own sanitizers need a nightly compiler, so only the C++ is instrumented, by its compiler,
//! and the runtimes come from there too. They are preloaded because AddressSanitizer wants to be the
//! first library of a process whose main program it did not build.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

const PACKAGE: &str = "tt-backend-tenstorrent";

/// Undefined behaviour ends the process: a line in a log of thousands would not be seen.
const FLAGS: &str = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -O1";

/// The runtimes, as the linker and as the loader name them.
const RUNTIMES: [(&str, &str); 2] = [("asan", "libasan.so"), ("ubsan", "libubsan.so")];

/// Tests of accuracy over large products: minutes under a sanitizer, of kernels that the others run too.
const SLOW: [&str; 3] = ["accuracy::", "fidelity_is_accuracy", "speed"];

/// Why the tests could not be run. That one of them failed is not such an error.
#[derive(Debug, thiserror::Error)]
pub enum SanitizeError {
    /// A program that cannot be started.
    #[error("cannot sanitize: {program} does not start: {source}")]
    Program {
        /// Its name.
        program: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A program that does not say what it was asked.
    #[error("cannot sanitize: {program} {what}")]
    Answer {
        /// Its name.
        program: String,
        /// Expected and found.
        what: String,
    },
    /// A C++ compiler without the library that the instrumented code calls.
    #[error("cannot sanitize: {compiler} has no {library}; install its sanitizer runtimes")]
    Runtime {
        /// The compiler.
        compiler: String,
        /// The library.
        library: &'static str,
    },
    /// The build failed; the compiler has said why.
    #[error("cannot sanitize: the build of {PACKAGE}'s tests failed")]
    Build,
}

/// What to run.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// Only tests whose name contains this.
    filter: Option<String>,
}

/// Builds and runs the tests. Whether all of them passed and no sanitizer found anything.
pub fn command(arguments: &Arguments) -> Result<bool, SanitizeError> {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "g++".to_owned());
    let runtimes = RUNTIMES
        .iter()
        .map(|(_, library)| runtime(&compiler, library))
        .collect::<Result<Vec<PathBuf>, _>>()?;
    let suite = build(&compiler, &host()?)?;
    let preload: Vec<String> = runtimes.iter().map(|path| path.display().to_string()).collect();
    let mut run = Command::new(&suite);
    run.env("LD_PRELOAD", preload.join(":"))
        .env("ASAN_OPTIONS", "detect_leaks=1")
        .env("UBSAN_OPTIONS", "print_stacktrace=1")
        // Compile-fail messages and the like find their files from the package's folder, as under cargo.
        .current_dir(root().join(PACKAGE))
        .args(&arguments.filter);
    for name in SLOW {
        run.args(["--skip", name]);
    }
    let status = status(&mut run)?;
    println!("{}", if status.success() { "sanitizers: nothing found" } else { "sanitizers: FAILED" });
    Ok(status.success())
}

/// The workspace's folder: of the run, if cargo started it, for a build may have moved since.
fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&package).join("..")
}

/// Where the compiler has a library; it answers with the bare name if nowhere.
fn runtime(compiler: &str, library: &'static str) -> Result<PathBuf, SanitizeError> {
    let answer = output(Command::new(compiler).arg(format!("-print-file-name={library}")))?;
    let path = PathBuf::from(answer.trim());
    if path.is_absolute() && path.exists() {
        Ok(path)
    } else {
        Err(SanitizeError::Runtime { compiler: compiler.to_owned(), library })
    }
}

/// The host's target triple. Named, it keeps `RUSTFLAGS` from build scripts and macros, which run
/// without the runtimes.
fn host() -> Result<String, SanitizeError> {
    let version = output(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| SanitizeError::Answer {
        program: "rustc".to_owned(),
        what: format!("-vV: expected a line `host: `, found {version:?}"),
    })
}

/// Builds the tests and returns the program. The build has a folder of its own: its flags would have
/// everything in the common one built anew, twice.
fn build(compiler: &str, host: &str) -> Result<PathBuf, SanitizeError> {
    let mut cargo = Command::new("cargo");
    cargo
        .current_dir(root())
        .env("CXX", compiler)
        .env("CXXFLAGS", FLAGS)
        .env("RUSTFLAGS", "-Clink-arg=-fsanitize=address,undefined")
        .env("CARGO_TARGET_DIR", root().join("target/sanitize"))
        .args(["rustc", "--target", host, "--package", PACKAGE, "--test", "suite"])
        .args(["--message-format", "json-render-diagnostics", "--"])
        .args(RUNTIMES.map(|(name, _)| format!("-Clink-arg=-l{name}")))
        .stderr(Stdio::inherit());
    let built = cargo.output().map_err(|source| not_started(&cargo, source))?;
    if !built.status.success() {
        return Err(SanitizeError::Build);
    }
    let messages = String::from_utf8_lossy(&built.stdout);
    let program = messages.lines().rev().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(PathBuf::from(message.get("executable")?.as_str()?))
    });
    program.ok_or_else(|| SanitizeError::Answer {
        program: "cargo".to_owned(),
        what: "built no test program".to_owned(),
    })
}

fn not_started(command: &Command, source: io::Error) -> SanitizeError {
    SanitizeError::Program { program: command.get_program().to_string_lossy().into_owned(), source }
}

fn status(command: &mut Command) -> Result<ExitStatus, SanitizeError> {
    command.status().map_err(|source| not_started(command, source))
}

/// What a program prints.
fn output(command: &mut Command) -> Result<String, SanitizeError> {
    let output = command.output().map_err(|source| not_started(command, source))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let program = command.get_program().to_string_lossy().into_owned();
    Err(SanitizeError::Answer { program, what: format!("failed with {}", output.status) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_one_line() {
        let error = runtime("no-such-compiler", "libasan.so").unwrap_err().to_string();
        assert!(error.starts_with("cannot sanitize: no-such-compiler does not start: "), "{error}");
        let error = runtime("echo", "libasan.so").unwrap_err().to_string();
        assert_eq!(error, "cannot sanitize: echo has no libasan.so; install its sanitizer runtimes");
    }
}
