//! The driver's C++ against this project's own declarations, always; and these against the real headers,
//! where `TT_METAL_HOME` says where they are.

use libtest_mimic::Trial;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const UNITS: &[&str] = &["blocks", "driver", "emit", "faults", "lower", "signatures", "tensors"];

/// Every test of this file. Without real headers the comparison with them is ignored, and counted so.
pub(crate) fn trials() -> Vec<Trial> {
    let trial = |name: &str, test: fn()| {
        Trial::test(format!("signatures::{name}"), move || {
            test();
            Ok(())
        })
    };
    vec![
        trial("the_driver_compiles_against_our_declarations", the_driver_compiles_against_our_declarations),
        trial("another_signature_is_found", another_signature_is_found),
        trial("our_declarations_are_the_real_ones", our_declarations_are_the_real_ones)
            .with_ignored_flag(env::var_os("TT_METAL_HOME").is_none()),
    ]
}

fn cpp() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cpp")
}

fn compile(unit: &str, arguments: &[String]) -> Result<(), String> {
    let output = Command::new("g++")
        .args(["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"])
        .args(arguments)
        .arg(cpp().join("ttnn").join(format!("{unit}.cpp")))
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// Our own headers, and those that cxx made of the bridge when this crate was built.
fn own_includes() -> Vec<String> {
    let made = Path::new(env!("OUT_DIR")).join("cxxbridge");
    [cpp().join("include"), made.join("include"), made.join("crate")]
        .map(|folder| format!("-I{}", folder.display()))
        .to_vec()
}

fn the_driver_compiles_against_our_declarations() {
    let mut arguments = own_includes();
    arguments.push("-DTT_TTNN_DECLARATIONS".to_owned());
    for unit in UNITS {
        if let Err(error) = compile(unit, &arguments) {
            panic!("{unit}.cpp does not compile against cpp/ttnn/declarations:\n{error}");
        }
    }
}

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

fn our_declarations_are_the_real_ones() {
    let home = PathBuf::from(env::var_os("TT_METAL_HOME").unwrap_or_default());
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
