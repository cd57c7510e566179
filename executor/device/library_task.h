#pragma once

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "ops/table.h"
#include "passes/target.h"

namespace fluid {

/// A bias and a relu that follow an op, or the sum with another tensor.
struct Epilogue {
  std::optional<Type> bias;  ///< a vector, one a channel
  bool relu = false;
  bool addend = false;  ///< of the result's type
};

/// What a library kernel is to do, with concrete types in the layouts they have.
struct LibraryTask {
  const ir::Op& op;
  std::vector<Type> operands;
  Type result;
  Epilogue epilogue;
};

/// `op` and the ops after it as one task, where a bias goes along the axis that is `channel_axis`
/// from the end. Empty when these are more than a bias and a relu, or, for who `may_add`, the sum
/// with a tensor alone; when a tensor has no elements, and when dtypes differ.
std::optional<LibraryTask> library_task(const ir::Op& op, const Chain& epilogue, int64_t batch,
                                        int channel_axis, bool may_add = false);

/// The ops of a fused body that was given to a library, and where the kernel's buffers are among
/// the fused op's.
struct LibraryBody {
  explicit LibraryBody(const ir::Op& fused);

  const ir::Op* head = nullptr;
  Chain epilogue;
  /// Of the fused op's operands: the head's operands, then the epilogue's further ones, in order.
  std::vector<size_t> buffers;
};

/// The entry of a table of kernels whose `kernel` is `name`; null where it has none.
template <class Kind, size_t n>
const Kind* kind_named(const Kind (&kinds)[n], std::string_view name) {
  const Kind* kind = std::ranges::find(kinds, name, &Kind::kernel);
  return kind != std::end(kinds) ? kind : nullptr;
}

/// Whether the definition of `op` names a kernel for a place.
inline bool names_kernel(const ir::Op& op, On place, std::string_view name) {
  return std::ranges::any_of(*def_of(op).kernels, [&](const LibraryKernel& kernel) {
    return kernel.place == place && kernel.name == name;
  });
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
