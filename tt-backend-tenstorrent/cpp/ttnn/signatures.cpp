// The functions that the driver calls, with the types that it calls them with. Compiled against this
// project's own declarations where tt-metal is not, and against the real headers where it is: either
// fails here, by name, when a signature is no longer the one below.
#include <type_traits>

#include "library.hpp"

namespace tt::on_ttnn {
namespace {

using ::ttnn::Activation;
using ::ttnn::CoreGrid;
using ::ttnn::DeviceComputeKernelConfig;
using ::ttnn::GlobalCircularBuffer;
using ::ttnn::MeshDevice;
using ::ttnn::Shape;
using ::ttnn::Tensor;
using ::ttnn::TensorSpec;
using Chain = std::vector<::ttnn::operations::unary::EltwiseUnaryWithParam>;
using Dtype = tt_metal::DataType;
using tt_metal::CoreRangeSet;
using tt_metal::Layout;
using tt_metal::MemoryConfig;
using tt_metal::SubDeviceId;
using tt_metal::Tile;
using Activations = ttsl::Span<const ::ttnn::operations::unary::EltwiseUnaryWithParam>;
using Attention = std::optional<::ttnn::operations::transformer::SDPAProgramConfig>;
using Matmul = std::optional<const ::ttnn::operations::matmul::MatmulProgramConfig>;
using Words = ttsl::Span<const std::uint32_t>;
template <typename T>
using Maybe = std::optional<T>;

// That NAME, or one overload of it, is a function of that type.
#define TT_SIGNATURE(NAME, ...) \
    static_assert(std::is_same_v<decltype(static_cast<__VA_ARGS__>(&NAME)), __VA_ARGS__>, #NAME " has another signature")

using Binary = Tensor (*)(const Tensor&, const Tensor&, const Maybe<const Dtype>&, const Maybe<MemoryConfig>&,
                          const Maybe<Tensor>&, Activations, Activations, Activations, const Maybe<CoreRangeSet>&,
                          const Maybe<SubDeviceId>&);
TT_SIGNATURE(::ttnn::add, Binary);
TT_SIGNATURE(::ttnn::subtract, Binary);
TT_SIGNATURE(::ttnn::multiply, Tensor (*)(const Tensor&, const Tensor&, const Maybe<const Dtype>&, const Maybe<MemoryConfig>&,
                                          const Maybe<Tensor>&, Activations, Activations, Activations, const Maybe<bool>&,
                                          const Maybe<CoreRangeSet>&, const Maybe<SubDeviceId>&));

TT_SIGNATURE(::ttnn::unary_chain, Tensor (*)(const Tensor&, const Chain&, const Maybe<MemoryConfig>&, const Maybe<Tensor>&,
                                             const Maybe<CoreRangeSet>&));
TT_SIGNATURE(::ttnn::addcmul, Tensor (*)(const Tensor&, const Tensor&, const Tensor&, ::ttnn::operations::ternary::ScalarVariant,
                                         const Maybe<MemoryConfig>&, const Maybe<Tensor>&));
using Choice = ::ttnn::operations::ternary::TensorScalarVariant;
TT_SIGNATURE(::ttnn::where, Tensor (*)(const Tensor&, const Choice&, const Choice&, const Maybe<MemoryConfig>&,
                                       const Maybe<Tensor>&, const Maybe<CoreRangeSet>&));
TT_SIGNATURE(::ttnn::matmul, Tensor (*)(const Tensor&, const Tensor&, bool, bool, const Maybe<const MemoryConfig>&,
                                        Maybe<const Dtype>, const Matmul&, const Maybe<const Activation>&,
                                        Maybe<const DeviceComputeKernelConfig>, Maybe<const CoreGrid>,
                                        const Maybe<const Tile>&, Maybe<Tensor>, const Maybe<const GlobalCircularBuffer>&,
                                        const Maybe<SubDeviceId>&));
TT_SIGNATURE(::ttnn::linear, Tensor (*)(const Tensor&, const Tensor&, const Maybe<const Tensor>&, bool, bool,
                                        const Maybe<const MemoryConfig>&, Maybe<const Dtype>, const Matmul&,
                                        const Maybe<const Activation>&, Maybe<const DeviceComputeKernelConfig>,
                                        Maybe<const CoreGrid>, const Maybe<const Tile>&, Maybe<Tensor>,
                                        const Maybe<const GlobalCircularBuffer>&, const Maybe<SubDeviceId>&));
TT_SIGNATURE(::ttnn::rms_norm,
             Tensor (*)(const Tensor&, float, const Maybe<const Tensor>&, const Maybe<const Tensor>&, const Maybe<const Tensor>&,
                        const Maybe<MemoryConfig>&, const Maybe<const ::ttnn::prim::LayerNormProgramConfig>&,
                        Maybe<const DeviceComputeKernelConfig>));
TT_SIGNATURE(::ttnn::embedding, Tensor (*)(const Tensor&, const Tensor&, const Maybe<int>&, const Maybe<Layout>&,
                                           ::ttnn::prim::EmbeddingsType, Maybe<const Dtype>, const Maybe<MemoryConfig>&,
                                           const Maybe<Tensor>&));
TT_SIGNATURE(::ttnn::argmax, Tensor (*)(const Tensor&, const Maybe<int>&, bool, const Maybe<CoreRangeSet>&, bool,
                                        const Maybe<MemoryConfig>&, Maybe<Tensor>));
TT_SIGNATURE(::ttnn::slice<std::uint32_t>, Tensor (*)(const Tensor&, Words, Words, Words, const Maybe<MemoryConfig>&,
                                                      const Maybe<Tensor>&, const Maybe<float>&, const Maybe<CoreRangeSet>&));
TT_SIGNATURE(::ttnn::concat, Tensor (*)(const std::vector<Tensor>&, int, const Maybe<MemoryConfig>&, const Maybe<Tensor>&,
                                        unsigned int, const Maybe<CoreRangeSet>&));
TT_SIGNATURE(::ttnn::reshape, Tensor (*)(const Tensor&, const Shape&, const Maybe<MemoryConfig>&,
                                         const Maybe<std::variant<std::uint32_t, float>>&, ::ttnn::TileReshapeMapMode,
                                         const Maybe<CoreRangeSet>&, bool));
TT_SIGNATURE(::ttnn::transpose, Tensor (*)(const Tensor&, std::int64_t, std::int64_t, float));
TT_SIGNATURE(::ttnn::permute, Tensor (*)(const Tensor&, const ttsl::SmallVector<std::int64_t>&, float));
TT_SIGNATURE(::ttnn::typecast, Tensor (*)(const Tensor&, const Dtype&, const Maybe<MemoryConfig>&, const Maybe<Tensor>&,
                                          const Maybe<CoreRangeSet>&));
TT_SIGNATURE(::ttnn::to_layout, Tensor (*)(const Tensor&, Layout, const Maybe<Dtype>&, const Maybe<MemoryConfig>&,
                                           const Maybe<CoreRangeSet>&, float));
TT_SIGNATURE(::ttnn::zeros, Tensor (*)(const Shape&, const Maybe<Dtype>&, const Maybe<Layout>&,
                                       Maybe<std::reference_wrapper<MeshDevice>>, const Maybe<MemoryConfig>&));
TT_SIGNATURE(::ttnn::cumsum, Tensor (*)(const Tensor&, const std::int32_t&, Maybe<Dtype>, const bool&, Maybe<Tensor>,
                                        const Maybe<MemoryConfig>&));
TT_SIGNATURE(::ttnn::update_cache, Tensor (*)(const Tensor&, const Tensor&, std::uint32_t, std::uint32_t,
                                              Maybe<const DeviceComputeKernelConfig>));
TT_SIGNATURE(::ttnn::fill_cache, Tensor (*)(const Tensor&, const Tensor&, std::uint32_t, std::uint32_t));
TT_SIGNATURE(::ttnn::operations::experimental::plus_one, Tensor (*)(const Tensor&, const Maybe<CoreRangeSet>&, bool));
TT_SIGNATURE(::ttnn::experimental::nlp_create_qkv_heads,
             std::tuple<Tensor, Tensor, Tensor> (*)(const Tensor&, const Maybe<Tensor>&, std::uint32_t, Maybe<std::uint32_t>,
                                                    bool, const Maybe<MemoryConfig>&,
                                                    const Maybe<std::vector<Maybe<Tensor>>>&));
TT_SIGNATURE(::ttnn::experimental::nlp_concat_heads, Tensor (*)(const Tensor&, const Maybe<MemoryConfig>&));
TT_SIGNATURE(::ttnn::experimental::rotary_embedding_hf, Tensor (*)(const Tensor&, const Tensor&, const Tensor&, bool,
                                                                   const Maybe<MemoryConfig>&,
                                                                   Maybe<const DeviceComputeKernelConfig>));
TT_SIGNATURE(::ttnn::transformer::scaled_dot_product_attention_decode,
             Tensor (*)(const Tensor&, const Tensor&, const Tensor&, bool, const Maybe<const Tensor>&,
                        const std::vector<std::uint32_t>&, const Maybe<const Tensor>&, const Maybe<const Tensor>&, Maybe<float>,
                        Maybe<std::uint32_t>, const Maybe<MemoryConfig>&, Attention, Maybe<DeviceComputeKernelConfig>,
                        Maybe<bool>));
TT_SIGNATURE(::ttnn::transformer::scaled_dot_product_attention,
             Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const Maybe<Tensor>&, bool, Maybe<float>,
                        Maybe<std::uint32_t>, const Maybe<MemoryConfig>&, Attention, Maybe<DeviceComputeKernelConfig>,
                        const Maybe<Tensor>&));
TT_SIGNATURE(::ttnn::open_mesh_device, std::shared_ptr<MeshDevice> (*)(int, std::size_t, std::size_t, std::size_t,
                                                                       const tt_metal::DispatchCoreConfig&, std::size_t));
TT_SIGNATURE(::ttnn::close_device, void (*)(MeshDevice&));
TT_SIGNATURE(tt_metal::create_device_tensor, Tensor (*)(const TensorSpec&, MeshDevice*, Maybe<tt_metal::TensorTopology>));
TT_SIGNATURE(tt_metal::copy_to_device, void (*)(tt_metal::distributed::MeshCommandQueue&, const std::byte*, Tensor&,
                                                const Maybe<tt_metal::BufferRegion>&));
TT_SIGNATURE(tt_metal::copy_to_host, void (*)(tt_metal::distributed::MeshCommandQueue&, const Tensor&, std::byte*,
                                              const Maybe<tt_metal::BufferRegion>&, bool));
TT_SIGNATURE(tt_metal::distributed::Synchronize, void (*)(MeshDevice*, Maybe<std::uint8_t>, ttsl::Span<const SubDeviceId>));
TT_SIGNATURE(tt_metal::experimental::configure_mock_mode, void (*)(ARCH, std::uint32_t));

#undef TT_SIGNATURE

}  // namespace
}  // namespace tt::on_ttnn
