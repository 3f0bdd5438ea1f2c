// Emits ttnn calls into a plan: one function a call. Each takes cells, names what it makes, and
// appends a step; nothing runs yet.
#pragma once

#include <optional>
#include <set>
#include <utility>

#include "fidelity.hpp"
#include "plan.hpp"

namespace tt::on_ttnn {

using UnaryType = ::ttnn::operations::unary::UnaryOpType;

// What is done, or left undone to be measured.
struct Levers {
    bool fuse = true;
    bool preallocate = true;
    bool keep_plans = true;
    bool keep_handles = true;
    bool whole_lists = true;
    bool round_trips = false;
};

// What all plans of a device share.
class Machine {
public:
    Machine(::ttnn::MeshDevice* device, const Fidelity& fidelity, const Levers& levers);

    ::ttnn::MeshDevice* device() const { return device_; }
    const Fidelity& fidelity() const { return fidelity_; }
    const Levers& levers() const { return levers_; }
    const ::ttnn::CoreGrid& grid() const { return grid_; }

    Tensor create(const Dims& dims, Dtype dtype, tt_metal::Layout layout) const;
    Tensor zeros(const Dims& dims, Dtype dtype) const;
    Tensor upload(const Dims& dims, Dtype dtype, tt_metal::Layout layout, const std::vector<float>& values) const;
    Tensor upload_bf16(const Dims& dims, tt_metal::Layout layout, const bfloat16* values) const;

    // The `index`-th scratch tensor of that shape; plans run one after the other and share them.
    Cell scratch(const Dims& dims, Dtype dtype, std::size_t index);
    // A tensor of constants, made once.
    Cell constant(const std::string& key, const Dims& dims, Dtype dtype, const std::function<std::vector<float>()>& make);
    // Looks everything up again, as code that holds no handle does at every call.
    void resolve_handles();

    // A cached program whose output is one of its operands has its description built again at every
    // call, unless it was made with an output of its own first: then its addresses are patched, which
    // takes a fifth of the time. So it is made that way, once, on scratch tensors.
    bool first_in_place(const std::string& program) { return made_in_place_.insert(program).second; }

    void drop_scratch();

    // Calls that a plan makes only now and then, as those once a pass.
    void extra(Kind kind) { ++extras_[static_cast<std::size_t>(kind)]; }
    std::uint64_t extras(Kind kind) const { return extras_[static_cast<std::size_t>(kind)]; }

    std::uint64_t handle_resolutions = 0;
    std::uint64_t constant_uploads = 0;

private:
    ::ttnn::MeshDevice* device_;
    Fidelity fidelity_;
    Levers levers_;
    ::ttnn::CoreGrid grid_;
    std::map<std::pair<Dims, Dtype>, std::vector<Cell>> scratch_;
    std::map<std::string, Cell> constants_;
    std::array<std::uint64_t, kKinds> extras_{};
    std::set<std::string> made_in_place_;
};

struct MatmulHow {
    const Compute* compute = nullptr;
    std::optional<Dtype> dtype;
    std::optional<::ttnn::operations::unary::UnaryWithParam> activation;
    Cell bias;
    bool transpose_a = false;
    bool transpose_b = false;
    Cell into;
    // The projections of a decode step: the whole grid, so that an activation is part of the call.
    bool grid = false;
};

class Emitter {
public:
    Emitter(Machine& machine, Plan& plan) : machine_(machine), plan_(plan) {}

    Op op = Op::Embed;

    Machine& machine() { return machine_; }
    const Fidelity& fidelity() const { return machine_.fidelity(); }

    // Something that is no call: bookkeeping between calls.
    void note(std::function<void()> run) { plan_.steps.push_back({Kind::Count, op, std::move(run)}); }
    void call(Kind kind, std::function<void()> run) { plan_.steps.push_back({kind, op, std::move(run)}); }

    Cell output(const Dims& dims, Dtype dtype, const Cell& into = nullptr);
    Cell fresh(const Dims& dims, Dtype dtype, const Cell& into = nullptr);

    Cell matmul(const Cell& a, const Cell& b, const MatmulHow& how);
    // a + value * b * c, with broadcasting, all of one dtype.
    Cell addcmul(const Cell& a, const Cell& b, const Cell& c, float value, const Cell& into = nullptr,
                 std::optional<Dtype> dtype = std::nullopt);
    // b * c by the same call with zeros for a: it costs the host a fifth of `multiply`.
    Cell product(const Cell& b, const Cell& c, const Cell& into = nullptr, std::optional<Dtype> dtype = std::nullopt);
    Cell where(const Cell& mask, const Cell& yes, const Cell& no, const Cell& into = nullptr);
    Cell binary(Kind kind, const Cell& a, const Cell& b, std::optional<Dtype> dtype = std::nullopt,
                std::optional<UnaryType> after = std::nullopt, std::optional<UnaryType> on_b = std::nullopt,
                const Cell& into = nullptr);
    Cell unary(UnaryType type, const Cell& x, const Cell& into = nullptr, std::optional<Dtype> dtype = std::nullopt);
    Cell rms_norm(const Cell& x, double eps, const Cell& weight, const Cell& into = nullptr);
    Cell typecast(const Cell& x, Dtype dtype, const Cell& into = nullptr);
    Cell embedding(const Cell& ids, const Cell& table, const Cell& into = nullptr);
    Cell argmax(const Cell& x, const Cell& into);
    Cell slice(const Cell& x, const Dims& begin, const Dims& end, const Cell& into = nullptr);
    Cell concat(const std::vector<Cell>& parts, int dim, const Cell& into = nullptr);
    Cell reshape(const Cell& x, const Dims& dims, const Cell& into = nullptr);
    Cell transpose(const Cell& x, int first, int second, const Cell& into = nullptr);
    Cell permute(const Cell& x, const std::array<int, 4>& order, const Cell& into = nullptr);
    // [1, 1, rows, (q + 2 kv) * width] as [1, q, rows, width] and twice [1, kv, rows, width].
    std::array<Cell, 3> create_heads(const Cell& x, std::uint32_t q, std::uint32_t kv);
    Cell concat_heads(const Cell& x, const Cell& into = nullptr);
    Cell rotate(const Cell& x, const Cell& cos, const Cell& sin, const Cell& into = nullptr);
    Cell cumsum(const Cell& x, int dim);

private:
    std::vector<Cell> stand_ins(const std::vector<Cell>& operands, const Cell& out);

    Machine& machine_;
    Plan& plan_;
    std::map<std::pair<Dims, Dtype>, std::size_t> taken_;
};

// softplus(x) = x above 20.
constexpr float kSoftplusBeta = 1.0f;
constexpr float kSoftplusThreshold = 20.0f;

inline ::ttnn::Shape shape(const Dims& dims) { return ::ttnn::Shape({dims[0], dims[1], dims[2], dims[3]}); }

inline std::uint32_t round_up(std::uint32_t value, std::uint32_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace tt::on_ttnn
