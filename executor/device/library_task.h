#pragma once

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "ops/table.h"
#include "passes/target.h"

namespace fluid {

/// The ops that a library kernel computes after its matmul or convolution: a bias and a relu, or an
/// addend. After one of 8-bit integers: a scale, a bias, a relu and a conversion to 8-bit integers,
/// each optional.
struct Epilogue {
  std::optional<Type> scale;  ///< type of the vector of factors: one value per channel
  std::optional<Type> bias;   ///< type of the bias vector: one value per channel
  bool relu = false;
  bool addend = false;  ///< whether a tensor of the result's type is added
};

/// The epilogues that a library kernel supports, beside a bias and a relu.
enum class EpilogueSupport : uint8_t {
  bias_and_relu,
  addend,    ///< also an addend
  integers,  ///< a scale, and a conversion to 8-bit integers; the operands are 8-bit integers
};

/// An op and its epilogue, computed by one library call. Types have concrete shapes and include
/// layouts.
struct LibraryTask {
  const ir::Op& op;
  std::vector<Type> operands;
  Type result;
  Epilogue epilogue;
};

/// Describes `op` and `epilogue` as one library call. `channel_axis`: axis of the bias, counted
/// from the end. Returns nullopt if the library does not support the epilogue, if a tensor is
/// empty, or if the dtypes do not fit: f32 or 8-bit integers from 8-bit integers, else one dtype.
std::optional<LibraryTask> library_task(const ir::Op& op, const EpilogueOps& epilogue,
                                        int64_t batch, int channel_axis,
                                        EpilogueSupport support = EpilogueSupport::bias_and_relu);

/// The body of a `fused` op. One library call computes the whole body.
struct LibraryBody {
  explicit LibraryBody(const ir::Op& fused);

  const ir::Op* head = nullptr;  ///< the matmul or convolution
  EpilogueOps epilogue;
  /// Indices of the operands of the fused op that the library call reads: first the operands of
  /// `head`, then the additional operands of the epilogue.
  std::vector<size_t> buffers;
};

/// Returns the entry of `table` for kernel `name`; null if there is none.
template <class Entry, size_t n>
const Entry* find_kernel(const Entry (&table)[n], std::string_view name) {
  const Entry* entry = std::ranges::find(table, name, &Entry::kernel);
  return entry != std::end(table) ? entry : nullptr;
}

/// Returns whether the definition of `op` lists library kernel `name` for `device`.
inline bool lists_kernel(const ir::Op& op, KernelDevice device, std::string_view name) {
  return std::ranges::any_of(*def_of(op).kernels, [&](const LibraryKernel& kernel) {
    return kernel.device == device && kernel.name == name;
  });
}

/// Returns the entries of `table` that the definition of `op` lists as CPU kernels.
template <class Entry, size_t n>
std::vector<const Entry*> cpu_kernels_for(const Entry (&table)[n], const ir::Op& op) {
  std::vector<const Entry*> found;
  for (const LibraryKernel& kernel : *def_of(op).kernels) {
    const Entry* entry =
        kernel.device == KernelDevice::cpu ? find_kernel(table, kernel.name) : nullptr;
    if (entry != nullptr) found.push_back(entry);
  }
  return found;
}

}  // namespace fluid
