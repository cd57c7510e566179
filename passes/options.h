#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "ir/type.h"

namespace fluid {

/// What an executable does with the recorded program.
enum class Mode : uint8_t {
  train,    ///< forward, backward, update
  eval,     ///< all outputs; inference mode of dropout and batch norm
  predict,  ///< only the outputs that the given feeds determine
  init,     ///< the startup graph: fills the variables
};

/// Everything a pass may depend on besides the program and the target.
struct Options {
  Mode mode = Mode::train;
  int64_t batch = 1;            ///< samples a step; > 0
  std::optional<DType> dtype;   ///< f64: the whole program in f64
  std::set<std::string> feeds;  ///< predict: the feeds that will be given; empty: all
  bool fuse = true;
  bool libraries = true;    ///< let library kernels claim ops
  bool guard_plan = false;  ///< --verify-plan: guards between ranges, dead ranges poisoned
};

}  // namespace fluid
