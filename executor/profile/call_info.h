#pragma once

#include <string>

#include "ir/graph.h"
#include "passes/target.h"

namespace fluid {

/// Description of one call of a compiled program, for reports.
struct CallInfo {
  /// Scope (layer name) of the op with the most FLOPs in the call, or of the parameter that the op
  /// updates. The source line of the op if there is no scope.
  std::string layer;
  std::string ops;  ///< names of the first few ops, such as "conv2d, add"
  /// Name of the library kernel, such as "onednn.conv2d", or of the collective op; otherwise
  /// "generated" or "copy".
  std::string kernel;
  /// Source line of the op with the most FLOPs, such as "mnist.cpp:13"; may be empty.
  std::string line;
  ir::Role role = ir::Role::forward;
  double flops = 0;  ///< floating-point operations, by the cost functions of the ops
  double bytes = 0;  ///< bytes of operands and results, each once; of a collective, the bytes sent
  DType dtype = DType::f32;  ///< dtype of the matmul or convolution, if any; otherwise f32 or f64
  /// Time predicted by the cost model that chose between library and generated kernels. Covers only
  /// the matmul or convolution of the call. -1 if there was no choice.
  double predicted_ms = -1;
  bool is_collective = false;  ///< whether the call is a collective
};

/// Returns the description of the call of `op`, an op in the main graph of a final program, for
/// `batch` samples on `target`.
CallInfo call_info(const ir::Op& op, int64_t batch, const Target& target);

/// Returns CallInfo::layer for `op`.
std::string layer_of(const ir::Op& op);

/// Returns a list of the names of the first few ops in `body`, the body of a fused op.
std::string ops_text(const ir::Graph& body);

}  // namespace fluid
