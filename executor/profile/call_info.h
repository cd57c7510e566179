#pragma once

#include <cstdint>
#include <string>

#include "ir/graph.h"
#include "passes/target.h"

namespace fluid {

/// Description of one call (of a kernel, copy or collective) in a compiled program, for profiles.
struct CallInfo {
  /// Scope (layer name) of the op with the most FLOPs in the call. If the op has no scope: the
  /// scope of the parameter that the op updates. If this is absent too: the op's source line.
  std::string layer;
  std::string ops;  ///< names of the first few ops, such as "conv2d, add"
  /// Name of the library kernel, such as "onednn.conv2d", or of the collective op; otherwise
  /// "generated" or "copy".
  std::string kernel;
  /// Kind of a generated kernel; empty for other kernels. "gather" accesses only a part of an
  /// operand or result, so `bytes` is too large. A contraction has the name of its op, such as
  /// "matmul". "optimizer" updates parameters. A reduction has the name of the reduction op with
  /// the most FLOPs, such as "sum". Any other kernel is "map". If several kinds apply, the first
  /// one is chosen.
  std::string kind;
  /// Layout of the call's largest operand or result, such as "nhwc". "row-major" if the type has no
  /// layout.
  std::string layout;
  DType largest_dtype = DType::f32;  ///< dtype of the call's largest operand or result
  /// Source line of the op with the most FLOPs, such as "mnist.cpp:13"; may be empty.
  std::string line;
  ir::Role role = ir::Role::forward;
  double flops = 0;  ///< floating-point operations, by the cost functions of the ops
  /// Bytes of operands and results, each counted once. For a collective, the bytes sent.
  double bytes = 0;
  DType dtype = DType::f32;  ///< dtype of the matmul or convolution, if any; otherwise f32 or f64
  /// Time of the call's matmul or convolution, predicted by the cost model that chose between
  /// library and generated kernels. -1 if the cost model made no choice.
  double predicted_ms = -1;
  bool is_collective = false;
  int64_t steps = 1;  ///< number of times that a scan repeats the call; 1 outside of scans

  /// Scales the totals to `count` repetitions of the call.
  void repeat(int64_t count) {
    steps = count;
    flops *= static_cast<double>(count);
    bytes *= static_cast<double>(count);
    if (predicted_ms >= 0) predicted_ms *= static_cast<double>(count);
  }
};

/// Describes the call that computes `op` for `batch` samples on `target`. `op` must be in the main
/// graph of a program after all passes.
CallInfo call_info(const ir::Op& op, int64_t batch, const Target& target);

/// Returns CallInfo::layer for `op`.
std::string layer_of(const ir::Op& op);

/// Returns a list of the names of the first few ops in `body`, the body of a fused op.
std::string ops_text(const ir::Graph& body);

}  // namespace fluid
