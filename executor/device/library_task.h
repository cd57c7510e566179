#pragma once

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "ops/table.h"
#include "passes/target.h"

namespace fluid {

/// The ops that a library fuses after its own: a bias and a relu, or an addend.
struct Epilogue {
  std::optional<Type> bias;  ///< type of the bias vector: one value per channel
  bool relu = false;
  bool addend = false;  ///< adds a tensor of the result's type
};

/// An op and its epilogue as a library call computes them. Types are concrete and carry layouts.
struct LibraryTask {
  const ir::Op& op;
  std::vector<Type> operands;
  Type result;
  Epilogue epilogue;
};

/// Describes `op` and `epilogue` as one library call. `channel_axis` counts from the end and is the
/// axis of the bias. `may_add`: the library supports an addend. Returns nullopt when the epilogue
/// does not match, a tensor is empty, or dtypes differ.
std::optional<LibraryTask> library_task(const ir::Op& op, const Chain& epilogue, int64_t batch,
                                        int channel_axis, bool may_add = false);

/// The ops of a fused body that a library computes, and the operands of the library call.
struct LibraryBody {
  explicit LibraryBody(const ir::Op& fused);

  const ir::Op* head = nullptr;
  Chain epilogue;
  /// Indices into the fused op's operands: the head's operands, then the epilogue's.
  std::vector<size_t> buffers;
};

/// The entry of a kernel table whose `kernel` is `name`, or null.
template <class Kind, size_t n>
const Kind* kind_named(const Kind (&kinds)[n], std::string_view name) {
  const Kind* kind = std::ranges::find(kinds, name, &Kind::kernel);
  return kind != std::end(kinds) ? kind : nullptr;
}

/// Whether the definition of `op` lists kernel `name` for `place`.
inline bool names_kernel(const ir::Op& op, On place, std::string_view name) {
  return std::ranges::any_of(*def_of(op).kernels, [&](const LibraryKernel& kernel) {
    return kernel.place == place && kernel.name == name;
  });
}

/// The entries of a kernel table that the definition of `op` lists for the CPU.
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
