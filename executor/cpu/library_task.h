#pragma once

#include <optional>

#include "passes/target.h"

namespace fluid {

/// A bias and a relu that follow an op.
struct Epilogue {
  std::optional<Type> bias;  ///< a vector, one a channel
  bool relu = false;
};

/// What a library kernel is to do, with concrete types in the layouts they have.
struct LibraryTask {
  const ir::Op& op;
  std::vector<Type> operands;
  Type result;
  Epilogue epilogue;
};

/// `op` and the ops after it as one task, where a bias goes along the axis that is `channel_axis`
/// from the end. Empty when these are more than a bias and a relu, when a tensor has no elements,
/// and when dtypes differ.
std::optional<LibraryTask> library_task(const ir::Op& op, const Chain& epilogue, int64_t batch,
                                        int channel_axis);

}  // namespace fluid
