//! Compiles the bridge and the device model, and under the feature `ttnn` the driver for the real library.

#[path = "build/ttnn.rs"]
mod ttnn;

use std::path::Path;

/// The translation units of the device model.
const SOURCES: &[&str] = &[
    "cpp/model/device.cpp",
    "cpp/model/dram.cpp",
    "cpp/model/elementwise.cpp",
    "cpp/model/elementwise_avx2.cpp",
    "cpp/model/layout.cpp",
    "cpp/model/matmul.cpp",
    "cpp/model/matmul_exact_avx2.cpp",
    "cpp/model/matmul_fast_avx2.cpp",
    "cpp/model/numerics.cpp",
    "cpp/model/plain.cpp",
    "cpp/model/program.cpp",
    "cpp/model/workers.cpp",
    "cpp/model/ops/add.cpp",
    "cpp/model/ops/argmax.cpp",
    "cpp/model/ops/attention.cpp",
    "cpp/model/ops/causal_conv.cpp",
    "cpp/model/ops/embed.cpp",
    "cpp/model/ops/gated_delta.cpp",
    "cpp/model/ops/gated_delta_avx2.cpp",
    "cpp/model/ops/gated_norm.cpp",
    "cpp/model/ops/gdn_gates.cpp",
    "cpp/model/ops/last_row.cpp",
    "cpp/model/ops/linear.cpp",
    "cpp/model/ops/rms_norm.cpp",
    "cpp/model/ops/rope.cpp",
    "cpp/model/ops/rotary.cpp",
    "cpp/model/ops/sigmoid_gate.cpp",
    "cpp/model/ops/swiglu.cpp",
];

fn main() {
    let mut build = cxx_build::bridge("src/bridge.rs");
    build
        .std("c++20")
        .include("cpp/include")
        .files(SOURCES)
        .opt_level(3)
        .warnings(true)
        .extra_warnings(true)
        // Products and sums are rounded apart, or results would differ with the compiler's mood.
        .flag_if_supported("-ffp-contract=off")
        .flag_if_supported("-pthread");
    build.compile("tt_device_model");
    println!("cargo::rustc-link-lib=pthread");
    if std::env::var_os("CARGO_FEATURE_TTNN").is_some() {
        ttnn::build();
    } else {
        // Writes the driver's bridge header and compiles nothing: `tests/ttnn` holds the driver's C++
        // against it.
        let _ = cxx_build::bridge("src/ttnn/bridge.rs");
    }
    for path in ["src/bridge.rs", "src/ttnn/bridge.rs", "cpp"] {
        println!("cargo::rerun-if-changed={}", Path::new(path).display());
    }
}
