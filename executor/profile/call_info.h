#pragma once

#include <string>

#include "ir/graph.h"
#include "passes/target.h"

namespace fluid {

/// Describes one call of a step list for reports.
struct CallInfo {
  /// The scope of the op with the most FLOPs in the call, or of the parameter that it updates. An
  /// op outside of layers gives its source line.
  std::string layer;
  std::string ops;  ///< the first few op names: "conv2d, add"
  /// Library kernel ("onednn.conv2d"), "generated", "copy", or the collective's op.
  std::string kernel;
  std::string line;  ///< source line of the op with the most FLOPs: "mnist.cpp:13"; may be empty
  ir::Role role = ir::Role::forward;
  double flops = 0;          ///< arithmetic operations by the ops' cost functions
  double bytes = 0;          ///< operands and results, each once; for a collective the bytes sent
  DType dtype = DType::f32;  ///< dtype of the contraction, if any; else f32 or f64
  /// Prediction of the cost model that chose between libraries and generated code. It covers the
  /// contraction only. -1: there was no choice.
  double predicted_ms = -1;
  bool exchange = false;  ///< a collective
};

/// Describes the call of `op`, an op in the main graph of a final program, for `batch` samples on
/// `target`.
CallInfo call_info(const ir::Op& op, int64_t batch, const Target& target);

/// Returns CallInfo::layer for `op`.
std::string layer_of(const ir::Op& op);

/// Names the first few ops in a fused body.
std::string ops_text(const ir::Graph& body);

}  // namespace fluid
