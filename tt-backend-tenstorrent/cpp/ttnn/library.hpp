// The real library, or, where there is none, this project's own declarations of what the driver uses
// of it: just the names and signatures, in declarations/ttnn.hpp. Where the real headers are, they
// are the judge: signatures.cpp asserts that both agree.
#pragma once

#ifdef TT_TTNN_DECLARATIONS
#include "declarations/ttnn.hpp"
#else
#include <tt-metalium/experimental/mock_device/mock_device.hpp>
#include <tt-metalium/memory_reporter.hpp>
#include <ttnn/device.hpp>
#include <ttnn/operations/copy/typecast/typecast.hpp>
#include <ttnn/operations/core/to_layout/to_layout_op.hpp>
#include <ttnn/operations/creation/creation.hpp>
#include <ttnn/operations/data_movement/concat/concat.hpp>
#include <ttnn/operations/data_movement/permute/permute.hpp>
#include <ttnn/operations/data_movement/reshape_view/reshape.hpp>
#include <ttnn/operations/data_movement/slice/slice.hpp>
#include <ttnn/operations/data_movement/transpose/transpose.hpp>
#include <ttnn/operations/eltwise/binary/binary.hpp>
#include <ttnn/operations/eltwise/ternary/ternary.hpp>
#include <ttnn/operations/eltwise/unary/unary.hpp>
#include <ttnn/operations/embedding/embedding.hpp>
#include <ttnn/operations/experimental/plusone/plusone.hpp>
#include <ttnn/operations/experimental/transformer/nlp_concat_heads/nlp_concat_heads.hpp>
#include <ttnn/operations/experimental/transformer/nlp_create_qkv_heads/nlp_create_qkv_heads.hpp>
#include <ttnn/operations/experimental/transformer/rotary_embedding_hf/rotary_embedding_hf.hpp>
#include <ttnn/operations/kv_cache/kv_cache.hpp>
#include <ttnn/operations/matmul/matmul.hpp>
#include <ttnn/operations/normalization/rmsnorm/rmsnorm.hpp>
#include <ttnn/operations/reduction/accumulation/cumsum/cumsum.hpp>
#include <ttnn/operations/reduction/argmax/argmax.hpp>
#include <ttnn/operations/transformer/sdpa/sdpa.hpp>
#include <ttnn/operations/transformer/sdpa_decode/sdpa_decode.hpp>
#include <ttnn/tensor/tensor.hpp>
#include <ttnn/tensor/tensor_ops.hpp>
#endif
