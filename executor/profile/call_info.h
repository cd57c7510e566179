#pragma once

#include <string>

#include "ir/graph.h"
#include "passes/target.h"

namespace fluid {

/// What a call of a step list does, for people.
struct CallInfo {
  /// The layer that it computes most for: its scope, or that of the parameter that it updates; of
  /// ops outside of layers their source line.
  std::string layer;
  std::string ops;     ///< "conv2d, add": the first few
  std::string kernel;  ///< a library's ("onednn.conv2d"), "generated", "copy", or the exchange's op
  std::string line;    ///< of the op that it computes most for: "mnist.cpp:13"; may be empty
  ir::Role role = ir::Role::forward;
  double flops = 0;  ///< arithmetic operations, by the definitions of its ops
  double bytes = 0;  ///< of its operands and results, each once; of an exchange: what is sent
  DType dtype = DType::f32;  ///< of the contraction that it computes, if one; else f32 or f64
  /// By the cost model that chose between libraries and generated code, of which it knows the
  /// contraction alone; -1 where there was no choice.
  double predicted_ms = -1;
  bool exchange = false;  ///< with other processes
};

/// `op` of the main graph of a final program, run for `batch` samples on `target`.
CallInfo call_info(const ir::Op& op, int64_t batch, const Target& target);

/// Of `op`, as CallInfo has it.
std::string layer_of(const ir::Op& op);

/// The names of the ops in a fused body, the first few.
std::string ops_text(const ir::Graph& body);

}  // namespace fluid
