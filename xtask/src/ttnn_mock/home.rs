//! The folder in which the library finds what its mock needs: the wheel's own files, the description of a
//! card, and a compiler that writes programs which nothing runs.

use super::MockError;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The card that is pretended, as the driver library describes cards: one Blackhole, a P150.
const CLUSTER: &str = "\
arch:
  0: blackhole
chips:
  {}
chip_unique_ids:
  0: 1
ethernet_connections:
  []
ethernet_connections_to_remote_devices:
  []
chips_with_mmio:
  - 0: 0
io_device_type: PCIe
harvesting:
  0:
    noc_translation: true
    harvest_mask: 192
    dram_harvesting_mask: 0
    eth_harvesting_mask: 288
    pcie_harvesting_mask: 2
    l2cpu_harvesting_mask: 0
chip_to_bus_id:
  0: \"0x01\"
boards:
  -
    - board_id: 4402341478400
    - board_type: p150
    - chips:
        - 0
asic_locations:
  0: 0
chip_pci_bdfs:
  0: 0000:01:00.0
";

/// Where the library looks for it.
const CLUSTER_FILE: &str = "tt_metal/third_party/umd/tests/cluster_descriptor_examples/blackhole_P150.yaml";

/// A program for any of the card's processors: a function at its start, and data.
const PROGRAM: &str = "\
static volatile int touched = 1;
__attribute__((noinline)) static int work(int x) { return x + touched; }
__attribute__((section(\".start\"), used)) void _start(void) { touched = work(touched); }
";

/// Writes the files that a step of the library's kernel build expects, whatever it was asked to compile.
const COMPILER: &str = "\
#!/bin/sh
root=$(dirname \"$0\")/../..
out= dep= script=
while [ $# -gt 0 ]; do
    case \"$1\" in
        --version) echo \"riscv-tt-elf-g++ (tenstorrent/sfpi:SFPI) 15.1.0\"; exit 0;;
        -o) shift; out=$1;;
        -MF) shift; dep=$1;;
        -T) shift; script=$1;;
        -T*) script=${1#-T};;
    esac
    shift
done
[ -n \"$dep\" ] && printf '%s: %s\\n' \"$out\" \"$0\" > \"$dep\"
[ -n \"$out\" ] || exit 0
if [ -n \"$script\" ]; then
    name=${script##*/}; name=${name%.ld}; name=${name#kernel_}; name=${name#firmware_}
    cp \"$root/stand-in/$name.elf\" \"$out\"
else
    : > \"$out\"
fi
";

/// Lays the folder out. `wheel` is an unpacked wheel, the folder with `ttnn` in it.
pub(super) fn prepare(home: &Path, wheel: &Path, compiler: &str) -> Result<(), MockError> {
    let package = wheel.join("ttnn");
    if !package.join("build/lib/_ttnncpp.so").exists() {
        return Err(MockError::Wheel { folder: wheel.to_owned() });
    }
    let package = fs::canonicalize(&package).map_err(|error| MockError::file(&package, error))?;
    make_folder(home)?;
    link_children(&package, home, &["tt_metal", "runtime"])?;
    link_children(&package.join("tt_metal"), &home.join("tt_metal"), &["third_party"])?;
    link_children(&package.join("runtime"), &home.join("runtime"), &["sfpi"])?;
    write(&home.join(CLUSTER_FILE), CLUSTER)?;
    let driver = home.join("runtime/sfpi/compiler/bin/riscv-tt-elf-g++");
    write(&driver, &COMPILER.replace("SFPI", &sfpi(&package)?))?;
    fs::set_permissions(&driver, fs::Permissions::from_mode(0o755))
        .map_err(|error| MockError::file(&driver, error))?;
    stand_ins(home, &package, compiler)
}

/// The device compiler's release, `7.58.0[694]`, as the wheel names it.
fn sfpi(package: &Path) -> Result<String, MockError> {
    let file = package.join("tt_metal/sfpi-version");
    let text = fs::read_to_string(&file).map_err(|error| MockError::file(&file, error))?;
    let value = |key: &str| {
        text.lines().find_map(|line| line.strip_prefix(key)).map_or("", |value| value.trim_matches('\''))
    };
    Ok(format!("{}[{}]", value("sfpi_version="), value("sfpi_build=")))
}

/// One program for each kind of processor, linked by the wheel's own scripts.
fn stand_ins(home: &Path, package: &Path, compiler: &str) -> Result<(), MockError> {
    let folder = home.join("runtime/sfpi/stand-in");
    let source = folder.join("program.c");
    write(&source, PROGRAM)?;
    let firmware = firmware_folder(package)?;
    for script in children(&package.join("runtime/hw/toolchain/blackhole"))? {
        let name = script.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let Some(processor) = name.strip_prefix("kernel_") else { continue };
        let linked_with = match processor {
            "aerisc" | "main_aerisc" => "active_erisc",
            "ierisc" => "idle_erisc",
            "subordinate_aerisc" => "subordinate_active_erisc",
            "subordinate_ierisc" => "subordinate_idle_erisc",
            other => other,
        };
        let symbols = firmware.join(linked_with).join(format!("{linked_with}_weakened.elf"));
        let output = Command::new(compiler)
            .args(["-march=rv32im", "-mabi=ilp32", "-O1", "-nostdlib", "-nostartfiles"])
            .args(["-Wl,--emit-relocs", "-Wl,-z,max-page-size=16"])
            .arg(format!("-Wl,--just-symbols={}", symbols.display()))
            .arg("-T")
            .arg(&script)
            .arg(&source)
            .arg("-o")
            .arg(folder.join(format!("{processor}.elf")))
            .output()
            .map_err(|error| MockError::Compiler { name: compiler.to_owned(), reason: error.to_string() })?;
        if !output.status.success() {
            let reason =
                String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().to_owned();
            return Err(MockError::Compiler { name: compiler.to_owned(), reason });
        }
    }
    Ok(())
}

/// Precompiled firmware for Blackhole: the sets that have a program for the DRAM cores.
fn firmware_folder(package: &Path) -> Result<PathBuf, MockError> {
    let all = package.join("tt_metal/pre-compiled");
    children(&all)?
        .into_iter()
        .find(|set| set.join("drisc/drisc_weakened.elf").exists())
        .ok_or(MockError::Wheel { folder: all })
}

fn children(folder: &Path) -> Result<Vec<PathBuf>, MockError> {
    let entries = fs::read_dir(folder).map_err(|error| MockError::file(folder, error))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

/// Links to everything in a folder except what is named.
fn link_children(from: &Path, to: &Path, except: &[&str]) -> Result<(), MockError> {
    make_folder(to)?;
    for child in children(from)? {
        let name = child.file_name().unwrap_or_default();
        let link = to.join(name);
        if except.iter().any(|other| name == *other) || link.exists() {
            continue;
        }
        symlink(&child, &link).map_err(|error| MockError::file(&link, error))?;
    }
    Ok(())
}

fn make_folder(folder: &Path) -> Result<(), MockError> {
    fs::create_dir_all(folder).map_err(|error| MockError::file(folder, error))
}

fn write(file: &Path, text: &str) -> Result<(), MockError> {
    if let Some(folder) = file.parent() {
        make_folder(folder)?;
    }
    fs::write(file, text).map_err(|error| MockError::file(file, error))
}
