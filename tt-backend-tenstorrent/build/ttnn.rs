//! Finds tt-metal, says what is missing where it is not found, and compiles the driver against it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;

/// The releases of ttnn that the driver is written for. One release has one ABI.
const VERSIONS: &[&str] = &["0.73.1"];

/// The device compiler that each of them names in `tt_metal/sfpi-version`, which both a header tree and
/// an installed library have: what tells releases apart without running anything.
const SFPI: &[&str] = &["7.58.0"];

const SOURCES: &[&str] = &[
    "cpp/ttnn/blocks.cpp",
    "cpp/ttnn/driver.cpp",
    "cpp/ttnn/emit.cpp",
    "cpp/ttnn/faults.cpp",
    "cpp/ttnn/lower.cpp",
    "cpp/ttnn/signatures.cpp",
    "cpp/ttnn/tensors.cpp",
];

/// A header of each part, and who provides it.
const HEADERS: &[(&str, &str)] = &[
    ("tt-metalium/experimental/mock_device/mock_device.hpp", "tt-metal: tt_metal/api"),
    ("hostdevcommon/common_values.hpp", "tt-metal: tt_metal/hostdevcommon/api"),
    ("tt_stl/span.hpp", "tt-metal: tt_stl"),
    ("ttnn/device.hpp", "tt-metal: ttnn/api"),
    ("ttnn/operations/matmul/matmul.hpp", "tt-metal: ttnn/cpp"),
    ("umd/device/types/arch.hpp", "tt-umd: device/api"),
    ("fmt/core.h", "fmt 11.1.4"),
    ("enchantum/enchantum.hpp", "enchantum"),
    ("reflect", "reflect 1.2"),
    ("nlohmann/json.hpp", "nlohmann_json 3.11"),
    ("tracy/Tracy.hpp", "tracy: public"),
];

/// Where a tree, or an install prefix, keeps its headers.
const HEADER_FOLDERS: &[&str] = &[
    "tt_metal/api",
    "tt_metal",
    "tt_metal/hostdevcommon/api",
    "tt_stl",
    "ttnn/api",
    "ttnn/cpp",
    "ttnn",
    "",
    "tt_metal/third_party/umd/device/api",
    "tt_metal/third_party/tracy/public",
    "include",
    "include/metalium-thirdparty",
];

/// Where they keep their libraries.
const LIBRARY_FOLDERS: &[&str] = &["build/lib", "build_Release/lib", "lib", "lib64", "lib/x86_64-linux-gnu"];

/// The libraries, by the names they are linked with.
const LIBRARIES: &[&str] = &["_ttnncpp.so", "libtt_metal.so", "libtt_stl.so"];

/// Ends the build with a message and nothing else.
fn refuse(message: &str) -> ! {
    for line in message.lines() {
        println!("cargo::error={line}");
    }
    eprintln!("{message}");
    process::exit(1);
}

/// Folders of a variable that is a colon-separated list.
fn folders(variable: &str) -> Vec<PathBuf> {
    println!("cargo::rerun-if-env-changed={variable}");
    env::var_os(variable).map(|list| env::split_paths(&list).collect()).unwrap_or_default()
}

/// The driver on the stand-in, against this project's own declarations.
fn build_stand_in() {
    cxx_build::bridge("src/ttnn/bridge.rs")
        .std("c++20")
        .include("cpp/include")
        .files(SOURCES)
        .file("cpp/ttnn/stand_in/stand_in.cpp")
        .define("TT_TTNN_DECLARATIONS", None)
        .opt_level(3)
        .warnings(true)
        .extra_warnings(true)
        .compile("tt_ttnn_driver");
}

/// The driver's library and what links with it.
pub(crate) fn build() {
    if env::var_os("CARGO_FEATURE_TTNN_STAND_IN").is_some() {
        return build_stand_in();
    }
    let home = folders("TT_METAL_HOME").into_iter().next();
    let given = folders("TTNN_INCLUDE_DIRS");
    let roots: Vec<PathBuf> =
        home.iter().cloned().chain([PathBuf::from("/usr"), PathBuf::from("/usr/local")]).collect();
    let includes = include_folders(&given, &roots);
    let libraries = library_folder(&roots);
    check_headers(&includes, home.as_deref());
    check_versions(home.as_deref(), &libraries);

    let mut build = cxx_build::bridge("src/ttnn/bridge.rs");
    build
        .std("c++20")
        .include("cpp/include")
        .files(SOURCES)
        .define("FMT_HEADER_ONLY", None)
        .define("DISABLE_NAMESPACE_STATIC_ASSERT", None)
        .define("TT_ENABLE_LIGHT_METAL_TRACE", "0")
        // Of the header `reflect`: its tests are definitions that only one unit may have.
        .define("NTEST", None)
        .opt_level(1)
        .debug(false)
        .warnings(true)
        .extra_warnings(true);
    for folder in &includes {
        build.flag("-isystem").flag(folder);
    }
    // The logger's macros as nothing, where the installation has no logger: another build of spdlog in the
    // program would take the place of the library's own.
    build.flag("-isystem").flag("cpp/ttnn/logger");
    build.compile("tt_ttnn_driver");
    link(&libraries);
}

fn include_folders(given: &[PathBuf], roots: &[PathBuf]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = given.to_vec();
    for root in roots {
        // The compiler's own folders stay in its own order.
        let system = root.starts_with("/usr");
        for folder in HEADER_FOLDERS {
            let folder = root.join(folder);
            let wanted = if system { folder.ends_with("metalium-thirdparty") } else { true };
            if wanted && folder.is_dir() {
                found.push(folder);
            }
        }
        // What a source tree's build downloaded: `.cpmcache/<package>/<hash>`.
        for package in children(&root.join(".cpmcache")) {
            for version in children(&package) {
                let nested = ["include", "single_include", "public", "enchantum/include"]
                    .map(|name| version.join(name));
                found.extend(nested.into_iter().chain([version]).filter(|folder| folder.is_dir()));
            }
        }
    }
    found
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn library_folder(roots: &[PathBuf]) -> PathBuf {
    let given = folders("TTNN_LIB_DIR");
    let candidates: Vec<PathBuf> = if given.is_empty() {
        roots.iter().flat_map(|root| LIBRARY_FOLDERS.iter().map(move |folder| root.join(folder))).collect()
    } else {
        given
    };
    let complete = |folder: &&PathBuf| LIBRARIES.iter().all(|library| folder.join(library).exists());
    candidates.iter().find(complete).cloned().unwrap_or_else(|| {
        refuse(&format!(
            "the feature `ttnn` needs tt-metal's libraries: set TTNN_LIB_DIR to the folder that holds {}.\n{}",
            LIBRARIES.join(", "),
            looked_in(&candidates)
        ))
    })
}

fn looked_in(folders: &[PathBuf]) -> String {
    let lines: Vec<String> =
        folders.iter().map(|folder| format!("  looked in {}", folder.display())).collect();
    lines.join("\n")
}

fn check_headers(includes: &[PathBuf], home: Option<&Path>) {
    let system = [PathBuf::from("/usr/include"), PathBuf::from("/usr/local/include")];
    let all: Vec<PathBuf> = includes.iter().chain(&system).cloned().collect();
    let missing: Vec<String> = HEADERS
        .iter()
        .filter(|(header, _)| !all.iter().any(|folder| folder.join(header).exists()))
        .map(|(header, of)| format!("  missing {header} (of {of})"))
        .collect();
    if missing.is_empty() {
        return;
    }
    let home = home
        .map_or("TT_METAL_HOME is not set".to_owned(), |home| format!("TT_METAL_HOME is {}", home.display()));
    refuse(&format!(
        "the feature `ttnn` needs tt-metal's headers: set TT_METAL_HOME to a source tree with its build or to an \
         install prefix, and TTNN_INCLUDE_DIRS (colon-separated) to what else is missing. {home}.\n{}\n{}",
        missing.join("\n"),
        looked_in(&all)
    ));
}

/// Headers and libraries of the releases that the driver is written for, and of the same one.
fn check_versions(home: Option<&Path>, libraries: &Path) {
    let compiler = |root: &Path| {
        let text = fs::read_to_string(root.join("tt_metal/sfpi-version")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("sfpi_version="))?;
        Some(line.trim().trim_matches('\'').to_owned())
    };
    // `<root>/build/lib` of a tree or a wheel.
    let installed = libraries.parent().and_then(Path::parent);
    for (root, what) in [(home, "headers"), (installed, "libraries")] {
        let Some(root) = root else { continue };
        let Some(found) = compiler(root) else { continue };
        if !SFPI.contains(&found.as_str()) {
            refuse(&format!(
                "the ttnn driver is written for ttnn {}, whose {what} name sfpi {}; those in {} name sfpi {found}",
                VERSIONS.join(", "),
                SFPI.join(", "),
                root.display()
            ));
        }
    }
    // A wheel says its version beside it.
    let beside = installed.and_then(Path::parent).map(children).unwrap_or_default();
    for entry in beside {
        let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let version = name.strip_prefix("ttnn-").and_then(|rest| rest.strip_suffix(".dist-info"));
        if let Some(version) = version.filter(|version| !VERSIONS.contains(version)) {
            refuse(&format!("the ttnn driver is written for ttnn {}; found {version}", VERSIONS.join(", ")));
        }
    }
}

/// Links by way of a folder of links within the build's own output: cargo lets what it runs find
/// libraries there, and only there.
fn link(libraries: &Path) {
    let Some(out) = env::var_os("OUT_DIR") else { refuse("cargo gave no OUT_DIR") };
    let links = PathBuf::from(out).join("ttnn-libraries");
    let bundled = libraries.join("../../../ttnn.libs");
    // Links of an earlier build may point elsewhere.
    let _ = fs::remove_dir_all(&links);
    let made = fs::create_dir_all(&links).and_then(|()| {
        for library in children(libraries).into_iter().chain(children(&bundled)) {
            if let Some(name) = library.file_name().filter(|name| name.to_string_lossy().contains(".so")) {
                std::os::unix::fs::symlink(fs::canonicalize(&library)?, links.join(name))?;
            }
        }
        Ok(())
    });
    if let Err(error) = made {
        refuse(&format!("cannot link to the libraries in {}: {error}", libraries.display()));
    }
    println!("cargo::rustc-link-search=native={}", links.display());
    for library in LIBRARIES {
        println!("cargo::rustc-link-lib=dylib:+verbatim={library}");
    }
    for name in children(&links).iter().filter_map(|link| link.file_name()) {
        let name = name.to_string_lossy();
        if name.starts_with("libtracy")
            || name.starts_with("libtt-umd.so.0") && name.len() == "libtt-umd.so.0".len()
        {
            println!("cargo::rustc-link-lib=dylib:+verbatim={name}");
        }
    }
}
