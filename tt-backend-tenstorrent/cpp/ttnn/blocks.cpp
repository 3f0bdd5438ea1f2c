// Mixers: the convolution, the delta rule and attention, each for one row of decode and for the rows of
// a prefill.
#include "blocks.hpp"

#include <algorithm>
#include <cmath>

#include "../model/fault.hpp"
#include "lower.hpp"

namespace tt::on_ttnn {
namespace {

std::string number(std::uint32_t value) { return std::to_string(value); }

}  // namespace

Cell Lowering::select(const Cell& x, std::uint32_t rows, const std::function<bool(std::uint32_t, std::uint32_t)>& wanted,
                      const std::string& name, const std::function<std::string()>& key, const Cell& into,
                      std::optional<Dtype> dtype) {
    const Dims dims{1, x->dims[1], rows, x->dims[2]};
    const Cell out = emit_.output({1, x->dims[1], rows, x->dims[3]}, dtype.value_or(x->dtype), into);
    Machine* machine = &machine_;
    emit_.call(Kind::Matmul, [out, x, dims, wanted, name, key, machine, compute = emit_.fidelity().exact] {
        const std::string full = "select " + name + ' ' + number(dims[1]) + ' ' + number(dims[2]) + ' ' + number(dims[3]) +
                                 ' ' + key();
        const Cell ones = machine->constant(full, dims, Dtype::BFLOAT16, [&] {
            std::vector<float> values;
            for (std::uint32_t batch = 0; batch < dims[1]; ++batch) {
                for (std::uint32_t to = 0; to < dims[2]; ++to) {
                    for (std::uint32_t from = 0; from < dims[3]; ++from) {
                        values.push_back(wanted(to, from) ? 1.0f : 0.0f);
                    }
                }
            }
            return values;
        });
        Tensor result = ::ttnn::matmul(ones->tensor, x->tensor, false, false, std::nullopt, out->dtype, std::nullopt,
                                       std::nullopt, compute, std::nullopt, std::nullopt,
                                       out->held ? std::optional<Tensor>(out->tensor) : std::nullopt);
        if (!out->held) {
            out->tensor = std::move(result);
        }
    });
    return out;
}

// --- The convolution ----------------------------------------------------------------------------

Cell Lowering::convolve(const Convolution& conv, const Cell& into) {
    const std::shared_ptr<Ring> ring = tensors_.ring(conv.state, conv.channels);
    return conv.m->dims[2] == 1 ? convolve_row(conv, ring, into) : convolve_rows(conv, ring, into);
}

// One row: it takes its place in the ring, whose rows are multiplied with their taps, and a product with
// ones sums them in f32: silu(sum), one rounding. Which row is next selects among constants that were
// staged once; nothing is written or shifted.
Cell Lowering::convolve_row(const Convolution& conv, const std::shared_ptr<Ring>& ring, const Cell& into) {
    const std::uint32_t kernel = conv.kernel;
    const std::uint32_t width = conv.m->dims[3];
    const Dims dims{1, 1, 32, width};
    std::vector<Cell> masks;
    std::vector<Cell> taps;
    for (std::uint32_t next = 0; next < kernel; ++next) {
        masks.push_back(machine_.constant("row " + number(next), {1, 1, 32, 1}, Dtype::BFLOAT16, [&] {
            std::vector<float> mask(32, 0.0f);
            mask[next] = 1.0f;
            return mask;
        }));
        taps.push_back(tensors_.derived(conv.taps, "taps " + number(next), dims, Dtype::BFLOAT16, [&](const std::vector<float>& w) {
            std::vector<float> rows(std::size_t{32} * width, 0.0f);
            for (std::uint32_t age = 0; age < kernel; ++age) {
                const std::uint32_t row = (next + kernel - age) % kernel;
                for (std::uint32_t at = 0; at < width; ++at) {
                    const std::uint32_t channel = conv.channels.empty() ? at : conv.channels[at];
                    rows[std::size_t{row} * width + at] = w[std::size_t{channel} * kernel + kernel - 1 - age];
                }
            }
            return rows;
        }));
    }
    // The tensors of this row, looked up by where the ring stands.
    const Cell mask = std::make_shared<Node>(*masks.front());
    const Cell tap = std::make_shared<Node>(*taps.front());
    emit_.note([ring, masks, taps, mask, tap] {
        mask->tensor = masks[ring->next]->tensor;
        tap->tensor = taps[ring->next]->tensor;
    });
    emit_.where(mask, conv.m, ring->rows, ring->rows);
    emit_.note([ring, kernel] { ring->next = (ring->next + 1) % kernel; });
    const Cell products = conv.fused ? emit_.product(ring->rows, tap, nullptr, Dtype::FLOAT32)
                                     : emit_.binary(Kind::Multiply, ring->rows, tap, Dtype::FLOAT32);
    const Cell ones = machine_.constant("ones", {1, 1, 1, 32}, Dtype::BFLOAT16, [] { return std::vector<float>(32, 1.0f); });
    MatmulHow how;
    how.compute = &emit_.fidelity().exact;
    how.dtype = Dtype::BFLOAT16;
    if (!conv.fused) {
        return emit_.unary(UnaryType::SILU, emit_.matmul(ones, products, how), into);
    }
    how.grid = true;
    how.activation = ::ttnn::operations::unary::UnaryWithParam(UnaryType::SILU);
    how.into = into;
    return emit_.matmul(ones, products, how);
}

// Many rows: history and inputs stand below each other, and each tap takes them as many rows later.
// Rows past the valid ones come out as zeros and leave nothing in the ring.
Cell Lowering::convolve_rows(const Convolution& conv, const std::shared_ptr<Ring>& ring, const Cell& into) {
    const std::uint32_t kernel = conv.kernel;
    const std::uint32_t history = kernel - 1;
    const std::uint32_t rows = conv.m->dims[2];
    const std::uint32_t width = conv.m->dims[3];
    const auto step = conv.step;
    const Cell all = emit_.concat({ring->rows, conv.m}, 2);
    const auto key = [ring, step] { return number(ring->next) + ' ' + number(step->valid); };
    // Where the input `age` rows before row `row` stands.
    const auto source = [ring, kernel](std::uint32_t row, std::uint32_t age) {
        return row >= age ? 32 + row - age : (ring->next + kernel - (age - row)) % kernel;
    };
    Cell sum;
    for (std::uint32_t tap = 0; tap < kernel; ++tap) {
        const std::uint32_t age = kernel - 1 - tap;
        const Cell taken = select(all, rows, [source, step, age](std::uint32_t row, std::uint32_t from) {
            return row < step->valid && source(row, age) == from;
        }, "tap " + number(age), key, nullptr, Dtype::FLOAT32);
        const Cell weight = tensors_.derived(conv.taps, "tap " + number(tap), {1, 1, 1, width}, Dtype::FLOAT32, [&](const std::vector<float>& w) {
            std::vector<float> row;
            for (std::uint32_t at = 0; at < width; ++at) {
                row.push_back(w[std::size_t{conv.channels.empty() ? at : conv.channels[at]} * kernel + tap]);
            }
            return row;
        });
        sum = sum == nullptr ? emit_.product(taken, weight) : emit_.addcmul(sum, taken, weight, 1.0f);
    }
    select(all, 32, [source, step, history](std::uint32_t to, std::uint32_t from) {
        return to < history && source(step->valid - 1, history - 1 - to) == from;
    }, "state", key, ring->rows);
    emit_.note([ring, history] { ring->next = history; });
    return emit_.unary(UnaryType::SILU, emit_.typecast(sum, Dtype::BFLOAT16), into);
}

// --- The delta rule -----------------------------------------------------------------------------

// [1, heads, rows, value dim] in bf16.
Cell Lowering::delta_rule(const Delta& delta) { return delta.q->dims[2] == 1 ? delta_row(delta) : delta_rows(delta); }

namespace {

// `u rsqrt(sum(u^2) + 1e-6) scale` is an RMSNorm with the weight `scale / sqrt(width)`.
constexpr double kUnitEps = 1e-6;

}  // namespace

// One row, the state in f32 throughout. With S' = decay S + k^T d and d = beta (v - decay k S): the
// decay meets k S where it is small, so that the state is read once for it and written once.
Cell Lowering::delta_row(const Delta& delta) {
    const std::uint32_t heads = delta.q->dims[1];
    const std::uint32_t width = delta.q->dims[3];
    const Dims per_head{1, heads, 1, 1};
    const auto unit = [&](const Cell& x, float scale) {
        const Cell weight = machine_.constant("unit " + number(width) + ' ' + std::to_string(scale), {1, 1, 1, width},
                                              Dtype::FLOAT32, [&] { return std::vector<float>(width, scale); });
        return emit_.rms_norm(in_f32(x), kUnitEps / width, weight);
    };
    const float root = std::sqrt(static_cast<float>(width));
    const Cell q = unit(delta.q, 1.0f / (root * root));
    const Cell k = unit(delta.k, 1.0f / root);
    const Cell v = in_f32(delta.v);
    const Cell beta = emit_.typecast(emit_.reshape(delta.beta, per_head), Dtype::FLOAT32);
    Cell decay = delta.decay;
    if (decay == nullptr) {
        decay = emit_.unary(UnaryType::EXP, delta.log_decay);
    }
    decay = emit_.reshape(decay, per_head);
    const Cell state = tensors_.read(delta.state);

    MatmulHow how;
    how.compute = &emit_.fidelity().exact;
    const Cell recalled = emit_.matmul(k, state, how);
    const Cell missing = emit_.addcmul(v, recalled, decay, -1.0f);
    const Cell change = emit_.product(missing, beta);
    how.transpose_a = true;
    const Cell update = emit_.matmul(k, change, how);
    how.transpose_a = false;
    emit_.addcmul(update, decay, state, 1.0f, state);
    how.dtype = Dtype::BFLOAT16;
    return emit_.matmul(q, state, how);
}

// Many rows, in chunks of at most 64: the form of the reference's page, section 3, step 5. Products of
// matrices take their operands as tf32; the state and all that is element-wise is f32.
Cell Lowering::delta_rows(const Delta& delta) {
    const std::uint32_t heads = delta.q->dims[1];
    const std::uint32_t rows = delta.q->dims[2];
    const std::uint32_t width = delta.q->dims[3];
    const std::uint32_t value_width = delta.v->dims[3];
    const std::uint32_t chunk = rows % 64 == 0 ? 64 : 32;
    const std::uint32_t chunks = rows / chunk;
    const auto step = delta.step;
    // [1, heads, rows, w] as [chunks, heads, chunk, w].
    const auto cut = [&](const Cell& x) {
        if (chunks == 1) {
            return x;
        }
        return emit_.permute(emit_.reshape(x, {heads, chunks, chunk, x->dims[3]}), {1, 0, 2, 3});
    };
    // Rows that are no tokens neither change the state nor let it decay.
    Machine* machine = &machine_;
    const Cell valid = std::make_shared<Node>(Node{{1, 1, rows, 1}, Dtype::FLOAT32, Tensor(), true});
    emit_.note([valid, step, rows, machine] {
        valid->tensor = machine->constant("valid " + number(rows) + ' ' + number(step->valid), valid->dims, Dtype::FLOAT32, [&] {
            std::vector<float> mask(rows, 0.0f);
            std::fill_n(mask.begin(), step->valid, 1.0f);
            return mask;
        })->tensor;
    });
    const auto column = [&](const Cell& x) { return cut(emit_.product(emit_.permute(x, {0, 3, 2, 1}), valid)); };
    const auto unit = [&](const Cell& x, float scale) {
        const Cell weight = machine_.constant("unit " + number(width) + ' ' + std::to_string(scale), {1, 1, 1, width},
                                              Dtype::FLOAT32, [&] { return std::vector<float>(width, scale); });
        return cut(emit_.rms_norm(in_f32(x), kUnitEps / width, weight));
    };
    const float root = std::sqrt(static_cast<float>(width));
    const Cell q = unit(delta.q, 1.0f / (root * root));
    const Cell k = unit(delta.k, 1.0f / root);
    const Cell v = cut(in_f32(delta.v));
    const Cell beta = column(emit_.typecast(delta.beta, Dtype::FLOAT32));
    const Cell g = column(delta.log_decay);

    const auto square = [&](const std::string& name, float below, float on, float above) {
        return machine_.constant(name + ' ' + number(chunk), {1, 1, chunk, chunk}, Dtype::FLOAT32, [&] {
            std::vector<float> values;
            for (std::uint32_t row = 0; row < chunk; ++row) {
                for (std::uint32_t col = 0; col < chunk; ++col) {
                    values.push_back(col < row ? below : col == row ? on : above);
                }
            }
            return values;
        });
    };
    const Cell later = square("later", 0.0f, 0.0f, -1e30f);
    const Cell strictly = square("minus strictly lower", -1.0f, 0.0f, 0.0f);
    const Cell identity = square("identity", 0.0f, 1.0f, 0.0f);

    MatmulHow how;
    how.compute = &emit_.fidelity().exact;
    const auto times = [&](const Cell& a, const Cell& b) { return emit_.matmul(a, b, how); };
    const auto times_transposed = [&](const Cell& a, const Cell& b) {
        MatmulHow turned = how;
        turned.transpose_b = true;
        return emit_.matmul(a, b, turned);
    };
    const auto plus = [&](const Cell& a, const Cell& b) { return emit_.binary(Kind::Add, a, b); };
    const auto minus = [&](const Cell& a, const Cell& b) { return emit_.binary(Kind::Subtract, a, b); };

    // Decay from each row to each later one, and what is left of it to a chunk's end.
    const Cell sums = emit_.cumsum(g, 2);
    const Cell between = emit_.binary(Kind::Add, minus(sums, emit_.transpose(sums, 2, 3)), later, std::nullopt, UnaryType::EXP);
    const Cell since_start = emit_.unary(UnaryType::EXP, sums);
    const Cell by_row = emit_.permute(sums, {0, 2, 1, 3});
    const Cell last = emit_.reshape(emit_.slice(by_row, {0, chunk - 1, 0, 0}, {chunks, chunk, heads, 1}), {chunks, heads, 1, 1});
    const Cell whole = emit_.unary(UnaryType::EXP, last);
    const Cell to_end = emit_.binary(Kind::Subtract, last, sums, std::nullopt, UnaryType::EXP);

    const Cell kb = emit_.product(k, beta);
    const Cell vb = emit_.product(v, beta);
    // T = (I + A)^-1 with A strictly lower, hence nilpotent: the product of (I + N^(2^i)), N = -A.
    Cell power = emit_.product(emit_.product(times_transposed(kb, k), between), strictly);
    Cell inverse = plus(power, identity);
    for (std::uint32_t reach = 2; reach < chunk; reach *= 2) {
        power = times(power, power);
        inverse = plus(inverse, times(inverse, power));
    }
    const Cell u = times(inverse, vb);
    const Cell w = times(inverse, emit_.product(kb, since_start));
    const Cell scores = emit_.product(times_transposed(q, k), between);
    const Cell queries = emit_.product(q, since_start);
    const Cell keys = emit_.product(k, to_end);

    const Cell state = tensors_.read(delta.state);
    std::vector<Cell> outputs;
    for (std::uint32_t at = 0; at < chunks; ++at) {
        const auto part = [&](const Cell& x) {
            return chunks == 1 ? x : emit_.slice(x, {at, 0, 0, 0}, {at + 1, x->dims[1], x->dims[2], x->dims[3]});
        };
        const Cell change = minus(part(u), times(part(w), state));
        outputs.push_back(plus(times(part(queries), state), times(part(scores), change)));
        MatmulHow turned = how;
        turned.transpose_a = true;
        const Cell update = emit_.matmul(part(keys), change, turned);
        emit_.addcmul(update, part(whole), state, 1.0f, state);
    }
    Cell o = outputs.front();
    if (chunks > 1) {
        o = emit_.reshape(emit_.permute(emit_.concat(outputs, 0), {1, 0, 2, 3}), {1, heads, rows, value_width});
    }
    return emit_.typecast(o, Dtype::BFLOAT16);
}

// --- Attention ----------------------------------------------------------------------------------

namespace {

::ttnn::operations::transformer::SDPAProgramConfig attention_config(const Machine& machine) {
    ::ttnn::operations::transformer::SDPAProgramConfig config;
    config.compute_with_storage_grid_size = tt_metal::CoreCoord(machine.grid().x, machine.grid().y);
    config.q_chunk_size = 32;
    // Larger ones do not fit L1 with heads of 256.
    config.k_chunk_size = 128;
    config.exp_approx_mode = machine.fidelity().approximate_exp;
    return config;
}

}  // namespace

// [1, 1, rows, heads x width].
Cell Lowering::attend(const Attend& attend, const Cell& into) {
    Slot& keys = tensors_.slot(attend.cache_k);
    if (keys.zeros) {
        keys.rotated = attend.rotated;
    } else if (keys.rotated != attend.rotated) {
        throw Fault(FaultKind::Invalid, "expected a cache whose keys are in the order of this list");
    }
    const Cell cache_k = tensors_.read(attend.cache_k);
    const Cell cache_v = tensors_.read(attend.cache_v);
    const std::uint32_t heads = attend.q->dims[1];
    const std::uint32_t rows = attend.q->dims[2];
    const std::uint32_t width = attend.q->dims[3];
    const auto step = attend.step;
    emit_.note([step, context = attend.context] {
        if (std::uint64_t{step->start} + step->valid > context) {
            throw Fault(FaultKind::Invalid, "attention: expected positions within the context");
        }
    });
    store(attend.k, cache_k, step);
    store(attend.v, cache_v, step);
    const float scale = 1.0f / std::sqrt(static_cast<float>(width));
    const auto config = attention_config(machine_);
    const Compute compute = emit_.fidelity().attention;
    const Cell q = attend.q;
    if (rows == 1) {
        const Cell side_by_side = emit_.reshape(q, {1, 1, heads, width});
        const Cell out = emit_.fresh({1, 1, heads, width}, Dtype::BFLOAT16);
        emit_.call(Kind::AttentionDecode, [out, side_by_side, cache_k, cache_v, step, scale, config, compute] {
            out->tensor = ::ttnn::transformer::scaled_dot_product_attention_decode(
                side_by_side->tensor, cache_k->tensor, cache_v->tensor, true, std::nullopt, {}, step->current->tensor,
                std::nullopt, scale, std::nullopt, std::nullopt, config, compute);
        });
        return emit_.reshape(out, {1, 1, 1, heads * width}, into);
    }
    const Cell out = emit_.fresh({1, heads, rows, width}, Dtype::BFLOAT16);
    Machine* machine = &machine_;
    emit_.call(Kind::Attention, [out, q, k = attend.k, v = attend.v, cache_k, cache_v, step, scale, config, compute, machine,
                                 rows, context = attend.context] {
        const auto run = [&](const Tensor& keys, const Tensor& values, const std::optional<Tensor>& mask) {
            out->tensor = ::ttnn::transformer::scaled_dot_product_attention(q->tensor, keys, values, mask, !mask.has_value(),
                                                                            scale, std::nullopt, std::nullopt, config, compute);
        };
        if (step->start == 0) {
            run(k->tensor, v->tensor, std::nullopt);
            return;
        }
        const std::uint32_t seen = std::min(round_up(step->start + rows, 32), round_up(context, 32));
        const auto head_of = [&](const Cell& cache) {
            if (seen == cache->dims[2]) {
                return cache->tensor;
            }
            machine->extra(Kind::Slice);
            const Dims begin{0, 0, 0, 0};
            const Dims end{1, cache->dims[1], seen, cache->dims[3]};
            const Dims by{1, 1, 1, 1};
            using Span = ttsl::Span<const std::uint32_t>;
            return ::ttnn::slice<std::uint32_t>(cache->tensor, Span(begin), Span(end), Span(by));
        };
        const std::string key = "mask " + number(step->start) + ' ' + number(rows) + ' ' + number(seen);
        const Cell mask = machine->constant(key, {1, 1, rows, seen}, Dtype::BFLOAT16, [&] {
            std::vector<float> values;
            for (std::uint32_t row = 0; row < rows; ++row) {
                for (std::uint32_t position = 0; position < seen; ++position) {
                    values.push_back(position <= step->start + row ? 0.0f : -1e9f);
                }
            }
            return values;
        });
        run(head_of(cache_k), head_of(cache_v), mask->tensor);
    });
    return emit_.concat_heads(out, into);
}

// Keys or values to their positions. A prefill that does not begin at a tile's first row is merged with
// the rows that stand in that tile already.
void Lowering::store(const Cell& fresh, const Cell& cache, const std::shared_ptr<StepState>& step) {
    if (fresh->dims[2] == 1) {
        emit_.call(Kind::UpdateCache, [fresh, cache, step] {
            static_cast<void>(::ttnn::update_cache(cache->tensor, fresh->tensor, step->start));
        });
        return;
    }
    Machine* machine = &machine_;
    emit_.call(Kind::FillCache, [fresh, cache, step, machine, compute = emit_.fidelity().exact] {
        const std::uint32_t rows = fresh->dims[2];
        const std::uint32_t base = step->start / 32 * 32;
        const std::uint32_t offset = step->start - base;
        const std::uint32_t block = round_up(offset + step->valid, 32);
        if (offset == 0 && block == rows) {
            static_cast<void>(::ttnn::fill_cache(cache->tensor, fresh->tensor, 0, step->start));
            return;
        }
        const std::uint32_t heads = fresh->dims[1];
        const Dims begin{0, 0, base, 0};
        const Dims end{1, heads, base + 32, fresh->dims[3]};
        const Dims by{1, 1, 1, 1};
        using Span = ttsl::Span<const std::uint32_t>;
        const Tensor before = ::ttnn::slice<std::uint32_t>(cache->tensor, Span(begin), Span(end), Span(by));
        const Tensor both = ::ttnn::concat({before, fresh->tensor}, 2);
        const std::string key = "merge " + number(heads) + ' ' + number(rows) + ' ' + number(offset) + ' ' + number(step->valid);
        const Cell ones = machine->constant(key, {1, heads, block, 32 + rows}, Dtype::BFLOAT16, [&] {
            std::vector<float> values;
            for (std::uint32_t head = 0; head < heads; ++head) {
                for (std::uint32_t to = 0; to < block; ++to) {
                    for (std::uint32_t from = 0; from < 32 + rows; ++from) {
                        const bool old = to < offset && from == to;
                        const bool now = to >= offset && to < offset + step->valid && from == 32 + to - offset;
                        values.push_back(old || now ? 1.0f : 0.0f);
                    }
                }
            }
            return values;
        });
        const Tensor merged = ::ttnn::matmul(ones->tensor, both, false, false, std::nullopt, Dtype::BFLOAT16, std::nullopt,
                                             std::nullopt, compute);
        static_cast<void>(::ttnn::fill_cache(cache->tensor, merged, 0, base));
        machine->extra(Kind::Slice);
        machine->extra(Kind::Concat);
        machine->extra(Kind::Matmul);
    });
}

}  // namespace tt::on_ttnn
