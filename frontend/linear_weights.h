#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// A parameter w of rank 2 that a matmul reads as its second operand, transposed or not. It is no
/// LoRA adapter.
struct LinearWeight {
  Value value;
  std::vector<ir::Op*> products;  ///< the matmuls, in program order
  /// An op or output that reads w otherwise, for messages: "'transpose' of net.cpp:12", or
  /// "'transpose' (%wt)" for an op without a source line; empty: none. The weight penalties that
  /// recipes add to their losses (set_penalties()) do not count.
  std::string other_reader = {};

  const std::string& name() const { return value.op()->symbol; }
  /// For messages: "'w', which 'transpose' of net.cpp:12 reads, too".
  std::string text() const;
};

/// Returns the weights in the order of their first products.
std::vector<LinearWeight> linear_weights(const ir::Graph& graph);

}  // namespace fluid
