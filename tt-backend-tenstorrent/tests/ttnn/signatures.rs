//! The driver's C++ against this project's own declarations, always; and these against the real headers,
//! where `TT_METAL_HOME` says where they are.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const UNITS: &[&str] = &["blocks", "driver", "emit", "faults", "lower", "signatures", "tensors"];

fn cpp() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cpp")
}

/// The headers that cxx made of the bridge when this crate was built, beside the test itself in the
/// target folder.
fn bridge_headers() -> Option<PathBuf> {
    let build = env::current_exe().ok()?.ancestors().nth(2)?.join("build");
    let mut found: Vec<PathBuf> = std::fs::read_dir(build)
        .ok()?
        .flatten()
        .map(|entry| entry.path().join("out/cxxbridge/include"))
        .filter(|folder| folder.join("tt-backend-tenstorrent/src/ttnn/bridge.rs.h").exists())
        .collect();
    found.sort_by_key(|folder| folder.metadata().and_then(|data| data.modified()).ok());
    found.pop()
}

fn compile(unit: &str, arguments: &[String]) -> Result<(), String> {
    let output = Command::new(env::var_os("CXX").unwrap_or_else(|| "g++".into()))
        .args(["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"])
        .args(arguments)
        .arg(cpp().join("ttnn").join(format!("{unit}.cpp")))
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

fn own_includes() -> Vec<String> {
    let Some(bridge) = bridge_headers() else { panic!("the bridge's headers are not beside this test") };
    let package = bridge.with_file_name("crate");
    [cpp().join("include"), bridge, package].map(|folder| format!("-I{}", folder.display())).to_vec()
}

#[test]
fn the_driver_compiles_against_our_declarations() {
    let mut arguments = own_includes();
    arguments.push("-DTT_TTNN_DECLARATIONS".to_owned());
    for unit in UNITS {
        if let Err(error) = compile(unit, &arguments) {
            panic!("{unit}.cpp does not compile against cpp/ttnn/declarations:\n{error}");
        }
    }
}

#[test]
fn another_signature_is_found() {
    let text = std::fs::read_to_string(cpp().join("ttnn/declarations/ttnn.hpp")).unwrap_or_default();
    let changed = text.replace(
        "Tensor transpose(const Tensor& input_tensor, std::int64_t dim1,",
        "Tensor transpose(const Tensor& input_tensor, std::int32_t dim1,",
    );
    assert_ne!(text, changed, "the declaration to be changed is there");
    let folder = env::temp_dir().join(format!("tt-declarations-{}", std::process::id()));
    let declarations = folder.join("declarations");
    std::fs::create_dir_all(&declarations).expect("a temporary folder");
    std::fs::write(declarations.join("ttnn.hpp"), changed).expect("a temporary file");
    for file in ["library.hpp", "signatures.cpp"] {
        std::fs::copy(cpp().join("ttnn").join(file), folder.join(file)).expect("a copy");
    }
    let output = Command::new("g++")
        .args(["-std=c++20", "-fsyntax-only", "-DTT_TTNN_DECLARATIONS"])
        .arg(folder.join("signatures.cpp"))
        .output()
        .expect("g++ runs");
    let _ = std::fs::remove_dir_all(&folder);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains("transpose"),
        "expected an error about transpose, found:\n{said}"
    );
}

#[test]
fn our_declarations_are_the_real_ones() {
    let Some(home) = env::var_os("TT_METAL_HOME") else {
        eprintln!("skipped: TT_METAL_HOME is not set, so there are no real headers to compare with");
        return;
    };
    let home = PathBuf::from(home);
    let folders = [
        "tt_metal/api",
        "tt_metal",
        "tt_metal/hostdevcommon/api",
        "tt_stl",
        "ttnn/api",
        "ttnn/cpp",
        "ttnn",
        "",
    ];
    let given = env::var_os("TTNN_INCLUDE_DIRS").unwrap_or_default();
    let mut arguments: Vec<String> = Vec::new();
    let all = folders.iter().map(|folder| home.join(folder)).chain(env::split_paths(&given));
    for folder in all.chain([cpp().join("ttnn/logger")]) {
        arguments.extend(["-isystem".to_owned(), folder.display().to_string()]);
    }
    let defines = [
        "-DFMT_HEADER_ONLY",
        "-DDISABLE_NAMESPACE_STATIC_ASSERT",
        "-DTT_ENABLE_LIGHT_METAL_TRACE=0",
        "-DNTEST",
    ];
    arguments.extend(defines.map(str::to_owned));
    if let Err(error) = compile("signatures", &arguments) {
        panic!("a signature is not the one of the headers in {}:\n{error}", home.display());
    }
}
