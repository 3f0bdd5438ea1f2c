// Cosines and sines of the step's positions, from frequencies that the program holds: the position
// is on the device, so nothing is uploaded.
#include "ops.hpp"

namespace tt::ops::rotary {

// dims: rotary; scalar: theta
void check(const Call& call, Program& program) {
    const std::uint32_t rotary = call.dim(0);
    const Spec& out = call.operand(1).spec;
    require_step(call, 0, out.rows);
    require(rotary % 2 == 0, call, "an even number of rotary dims");
    require_tiles(call, 1, DataType::Bf16, out.rows, rotary, "cosines of the rotary dims");
    require_tiles(call, 2, DataType::Bf16, out.rows, rotary, "sines of the rotary dims");
    const auto theta = static_cast<float>(call.command.scalar);
    for (std::uint32_t j = 0; j < rotary / 2; ++j) {
        program.table.push_back(1.0f / std::pow(theta, static_cast<float>(2 * j) / static_cast<float>(rotary)));
    }
}

void run(const Call& call, const Program& program) {
    const Matrix<std::uint16_t> cosines = call.bf16(1);
    const Matrix<std::uint16_t> sines = call.bf16(2);
    const StepView step(call.operand(0));
    const auto half = static_cast<std::uint32_t>(program.table.size());
    for (std::uint32_t row = 0; row < cosines.rows; ++row) {
        for (std::uint32_t j = 0; j < half; ++j) {
            const float angle = static_cast<float>(step.start + row) * program.table[j];
            const std::uint16_t cosine = store(call.how, std::cos(angle));
            const std::uint16_t sine = store(call.how, std::sin(angle));
            *cosines.at(row, j) = cosine;
            *cosines.at(row, j + half) = cosine;
            *sines.at(row, j) = sine;
            *sines.at(row, j + half) = sine;
        }
    }
}

}  // namespace tt::ops::rotary
