#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "frontend/program.h"

namespace fluid {

/// Saved activations, updated variables and optimizer state of a training step. Empty for a program
/// without a `train` op.
struct TrainingMemory {
  /// Ids of the forward ops whose results the backward pass reads.
  std::set<int64_t> saved_ops;
  std::set<std::string> updated_variables;  ///< names of the variables that the step updates
  int64_t optimizer_bytes = 0;              ///< bytes of the optimizer's moments
};
TrainingMemory training_memory(const Program& program);

/// A node of the diagram: a layer (the ops of one scope), or a single op outside all layers.
struct Box {
  std::string title;  ///< layer name such as "conv0", or name of the single op, feed or parameter
  std::vector<std::string> lines;  ///< text in the box: one line per element of `ops`
  std::vector<const ir::Op*> ops;  ///< ops, feeds and parameters of the box, in program order
  /// Row in the drawing. The rank of a box is larger than the ranks of the boxes whose values it
  /// reads.
  int rank = 0;
};

/// An edge of the diagram: a value, drawn from its producer's box to the box of a consumer. `from`
/// and `to` are indices into `Diagram::boxes`.
struct Arrow {
  size_t from = 0, to = 0;
  std::string label;   ///< type of the value; empty except on the first arrow of the value
  bool saved = false;  ///< whether the value is saved for the backward pass
};

/// A graph whose nodes are the layers of a program and whose edges are the tensors between layers.
struct Diagram {
  std::vector<Box> boxes;  ///< in program order
  std::vector<Arrow> arrows;
};

/// Makes a diagram with one box per layer of `program`. `saved_ops`: ids of the ops whose results
/// the backward pass reads; the diagram marks these results.
Diagram diagram_of(const Program& program, const std::set<int64_t>& saved_ops);
std::string to_dot(const Diagram& diagram, const std::string& name);
std::string to_svg(const Diagram& diagram);

}  // namespace fluid
