#pragma once

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "ops/table.h"
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

/// The entry of a table of kernels whose `kernel` is `name`; null where it has none.
template <class Kind, size_t n>
const Kind* kind_named(const Kind (&kinds)[n], std::string_view name) {
  const Kind* kind = std::ranges::find(kinds, name, &Kind::kernel);
  return kind != std::end(kinds) ? kind : nullptr;
}

/// The entries of a table of kernels that the definition of `op` names for the CPU.
template <class Kind, size_t n>
std::vector<const Kind*> kinds_for(const Kind (&kinds)[n], const ir::Op& op) {
  std::vector<const Kind*> found;
  for (const LibraryKernel& kernel : *def_of(op).kernels) {
    const Kind* kind = kernel.place == On::cpu ? kind_named(kinds, kernel.name) : nullptr;
    if (kind != nullptr) found.push_back(kind);
  }
  return found;
}

}  // namespace fluid
