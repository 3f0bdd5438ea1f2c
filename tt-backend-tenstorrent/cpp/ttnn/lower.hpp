// From a recorded list to a plan.
//
// The list is read as values: which command defines an operand, who else reads it, and whether anybody
// will read it after the list. With that, whole blocks are lowered at once (an attention layer's or a
// Gated DeltaNet layer's mixer, a gated MLP, a projection with its residual sum), and what is left one
// command at a time.
#pragma once

#include <set>

#include "device.hpp"

namespace tt::on_ttnn {

class Lowering {
public:
    Lowering(Machine& machine, Tensors& tensors, Plan& plan, const Batch& batch, std::uint32_t context);

    void run();

private:
    // One version of a slot within the list.
    struct Value {
        std::uint32_t slot;
        std::vector<std::size_t> readers;
        std::size_t definer;
        bool live_out = false;
        Cell cell;
    };
    static constexpr std::size_t kBefore = static_cast<std::size_t>(-1);

    // The commands of a mixer, by what they are in it; `parts` are those that the block absorbs.
    struct Attention {
        std::size_t query, k, v, norm_q, norm_k, rope, attention, gate;
        std::vector<std::size_t> parts;
    };
    struct DeltaNet {
        std::size_t m, z, a, b, conv, gates, delta, norm;
        std::vector<std::size_t> parts;
    };
    // What a convolution is lowered from. `channels` names the checkpoint's channel of each channel on
    // the device; empty where they are the same.
    struct Convolution {
        Cell m;
        std::uint32_t state;
        std::uint32_t taps;
        std::uint32_t kernel;
        std::vector<std::uint32_t> channels;
        std::shared_ptr<StepState> step;
        bool fused;
    };
    struct Delta {
        Cell q, k, v;    // [1, heads, rows, width], bf16 or already f32
        Cell beta;       // bf16 [1, 1, rows, heads]
        Cell decay;      // f32 [1, 1, 1, heads], exponentiated; decode only
        Cell log_decay;  // f32 [1, 1, rows, heads], where `decay` is not given
        std::uint32_t state;
        std::shared_ptr<StepState> step;
    };
    struct Attend {
        Cell q, k, v;  // bf16 [1, heads, rows, width]
        std::uint32_t cache_k, cache_v, context;
        // The rotary width if heads are in the device's order, else 0.
        std::uint32_t rotated;
        std::shared_ptr<StepState> step;
    };

    void analyse(const Batch& batch);
    const Command& command(std::size_t index) const { return commands_[index]; }
    Value& value(std::size_t index, std::size_t operand) { return values_[operands_[index][operand]]; }
    // The command that defines an operand, if it is of that kind and nobody else reads what it makes.
    std::optional<std::size_t> sole(std::size_t index, std::size_t operand, Op op, std::size_t readers = 1);
    Cell in(std::size_t index, std::size_t operand);
    // Binds what a block made to the value it stands for.
    void define(std::size_t index, std::size_t operand, const Cell& cell) { value(index, operand).cell = cell; }
    Cell destination(std::size_t index, std::size_t operand, const Dims& dims, Dtype dtype);
    Spec spec(std::size_t index, std::size_t operand) { return tensors_.slot(command(index).operands[operand]).spec; }
    std::uint32_t slot(std::size_t index, std::size_t operand) const { return command(index).operands[operand]; }
    std::shared_ptr<StepState> step(std::size_t index, std::size_t operand);
    std::string id(std::size_t index, std::size_t operand) const { return std::to_string(slot(index, operand)); }

    void lower(std::size_t index);
    void embed(std::size_t index);
    void linear(std::size_t index);
    void lm_head(std::size_t index);
    void add(std::size_t index);
    void rms_norm(std::size_t index);
    void swiglu(std::size_t index);
    void rotary(std::size_t index);
    void rope(std::size_t index);
    void attention(std::size_t index);
    void sigmoid_gate(std::size_t index);
    void causal_conv(std::size_t index);
    void gdn_gates(std::size_t index);
    void gated_delta(std::size_t index);
    void gated_norm(std::size_t index);
    void last_row(std::size_t index);
    void argmax(std::size_t index);

    // Blocks, found at their last command; empty where the list is not of that form.
    std::optional<Attention> attention_block(std::size_t gate);
    std::optional<DeltaNet> delta_block(std::size_t norm);
    void lower_block(const Attention& block);
    void lower_block(const DeltaNet& block);
    void absorb_blocks();
    bool reordered() const;

    // Parts that blocks and single commands share.
    Cell gamma(std::size_t index, std::size_t operand, std::uint32_t rotated);
    Cell heads_of(const Cell& x, std::uint32_t heads, std::uint32_t width, const std::uint32_t* geometry);
    Cell plain_gamma(std::size_t index, std::size_t operand);
    Cell decay_rate(std::size_t index, std::size_t operand, std::uint32_t heads);
    Cell convolve(const Convolution& conv, const Cell& into);
    Cell convolve_row(const Convolution& conv, const std::shared_ptr<Ring>& ring, const Cell& into);
    Cell convolve_rows(const Convolution& conv, const std::shared_ptr<Ring>& ring, const Cell& into);
    Cell in_f32(const Cell& x) { return x->dtype == Dtype::FLOAT32 ? x : emit_.typecast(x, Dtype::FLOAT32); }
    Cell delta_rule(const Delta& delta);
    Cell delta_row(const Delta& delta);
    Cell delta_rows(const Delta& delta);
    Cell attend(const Attend& attend, const Cell& into);
    void store(const Cell& fresh, const Cell& cache, const std::shared_ptr<StepState>& step);
    // Rows of x [1, batch, rows, width], selected by a product with zeros and ones that `wanted` says;
    // `key` names what it depends on, at run time.
    Cell select(const Cell& x, std::uint32_t rows, const std::function<bool(std::uint32_t, std::uint32_t)>& wanted,
                const std::string& name, const std::function<std::string()>& key, const Cell& into,
                std::optional<Dtype> dtype = std::nullopt);
    // Makes the rows of cos and sin that this pass needs, once a pass.
    std::pair<Cell, Cell> rotation(std::size_t index, std::size_t operand, std::uint32_t rotary, std::uint32_t width,
                                   std::uint32_t context);

    Machine& machine_;
    Tensors& tensors_;
    Emitter emit_;
    std::vector<Command> commands_;
    std::uint32_t context_;
    std::vector<Value> values_;
    std::vector<std::array<std::size_t, 7>> operands_;
    std::set<std::size_t> absorbed_;
    std::map<std::size_t, Attention> attentions_;
    std::map<std::size_t, DeltaNet> delta_nets_;
    // Gated MLPs, by their command: the projections of gate and up. Residual sums: the projection, and
    // which operand is the other.
    std::map<std::size_t, std::pair<std::size_t, std::size_t>> gated_;
    std::map<std::size_t, std::pair<std::size_t, std::size_t>> residual_;
};

}  // namespace tt::on_ttnn
