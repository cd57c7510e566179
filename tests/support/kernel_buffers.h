#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "ir/tensor.h"
#include "ops/op_def.h"

namespace fluid::testing {

/// Memory for a buffer of the kernel that is neither operand nor result: its constants, or zeros.
inline Tensor memory_of(const kir::Kernel& kernel, const kir::Buffer& buffer, int64_t batch) {
  if (buffer.role != kir::Buffer::Role::constants) {
    return Tensor(buffer.dtype, {buffer.elements.at(batch)});
  }
  return Tensor::of<int64_t>({std::ssize(kernel.constants)}, std::span(kernel.constants));
}

/// Copies the operands that results must overwrite in place to these results, which have their own
/// memory. `buffers`: those of the operands, then those of the results.
inline void copy_to_overwriting_results(const std::vector<InPlace>& pairs,
                                        std::span<Tensor> operands,
                                        std::span<void* const> buffers) {
  for (const InPlace& pair : pairs) {
    if (!pair.required) continue;
    Tensor& operand = operands[static_cast<size_t>(pair.in)];
    std::memcpy(buffers[operands.size() + static_cast<size_t>(pair.out)], operand.data(),
                static_cast<size_t>(operand.bytes()));
  }
}

/// As Compiler::compile takes them.
inline std::vector<const kir::Kernel*> addresses(std::span<const kir::Kernel> kernels) {
  std::vector<const kir::Kernel*> all;
  for (const kir::Kernel& kernel : kernels) all.push_back(&kernel);
  return all;
}

}  // namespace fluid::testing
