#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "frontend/program.h"

namespace fluid {

/// The saved values, parameters and optimizer memory of a training step; empty for a program
/// without `train`.
struct TrainingNeeds {
  /// Ids of the recorded forward ops whose results the backward pass reads.
  std::set<int64_t> saved_ops;
  std::set<std::string> updated;  ///< names of parameters
  int64_t optimizer_bytes = 0;    ///< of the optimizer's own variables (moments)
};
TrainingNeeds training_needs(const Program& program);

/// A layer (ops of one scope) or a single op outside of every layer.
struct Box {
  std::string title;               ///< "conv0", or the op's name
  std::vector<std::string> lines;  ///< ops and parameters inside
  std::vector<const ir::Op*> ops;  ///< in order, sources among them
  int rank = 0;                    ///< longest path from a feed; a feed is just above its reader
};

/// A value from the box that computes it to a box that reads it.
struct Arrow {
  size_t from = 0, to = 0;
  std::string label;   ///< its type; empty on further arrows of the value
  bool saved = false;  ///< kept for the backward pass
};

/// A program's layers, and the tensors between them.
struct Diagram {
  std::vector<Box> boxes;  ///< in the order of recording
  std::vector<Arrow> arrows;
};

/// `saved_ops`: see TrainingNeeds.
Diagram diagram_of(const Program& program, const std::set<int64_t>& saved_ops);
std::string to_dot(const Diagram& diagram, const std::string& name);
std::string to_svg(const Diagram& diagram);

}  // namespace fluid
