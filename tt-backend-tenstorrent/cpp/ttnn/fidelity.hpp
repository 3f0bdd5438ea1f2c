// Fidelity as a value of the session: which compute configuration each group of operations runs with,
// in tt-metal's own vocabulary.
#pragma once

#include "library.hpp"

namespace tt::on_ttnn {

using Compute = ::ttnn::DeviceComputeKernelConfig;

struct Fidelity {
    Compute linear;     // projections
    Compute head;       // logits
    Compute norm;       // norms: f32 accumulation, which is not the default of rms_norm
    Compute attention;  // scores and their product with the values
    Compute exact;      // selections of rows and everything about the recurrent state
    bool approximate_exp;
};

// `accuracy`: every product in full, f32 destinations. `performance`: projections, logits and
// attention run two phases of four, and the exponentials of attention are approximate. Norms and the
// recurrent state are the same in both: what they lose they lose in every later token.
inline Fidelity fidelity(bool performance) {
    const auto config = [](tt_metal::MathFidelity fidelity, bool approximate) {
        Compute compute;
        compute.math_fidelity = fidelity;
        compute.math_approx_mode = approximate;
        compute.fp32_dest_acc_en = true;
        compute.packer_l1_acc = true;
        return compute;
    };
    const Compute full = config(tt_metal::MathFidelity::HiFi4, false);
    if (!performance) {
        return {full, full, full, full, full, false};
    }
    const Compute half = config(tt_metal::MathFidelity::HiFi2, true);
    return {half, half, full, half, full, true};
}

}  // namespace tt::on_ttnn
