// The index of the largest logit: the lowest of equals, never a NaN unless all are (then 0).
#include "ops.hpp"

namespace tt::ops::argmax {

void check(const Call& call, Program&) {
    const Spec& logits = call.operand(0).spec;
    require_tiles(call, 0, DataType::F32, 1, logits.cols, "a row of logits in f32");
    const Spec& out = call.operand(1).spec;
    require(out.dtype == DataType::U32 && out.page == Page::RowMajor && DeviceTensor::elements(out) == 1, call,
            "an index as output");
}

void run(const Call& call, const Program&) {
    const Matrix<float> logits = call.f32(0);
    std::uint32_t best = 0;
    bool found = false;
    float largest = 0;
    logits.runs(0, 0, logits.cols, [&](const float* run, std::uint32_t done, std::uint32_t length) {
        for (std::uint32_t i = 0; i < length; ++i) {
            if (!std::isnan(run[i]) && (!found || run[i] > largest)) {
                found = true;
                largest = run[i];
                best = done + i;
            }
        }
    });
    *call.operand(1).flat<std::uint32_t>() = best;
}

}  // namespace tt::ops::argmax
