#pragma once

#include <span>
#include <vector>

#include "ir/tensor.h"
#include "ops/kernel_ir.h"

namespace fluid::testing {

/// Memory for a buffer of the kernel that is neither operand nor result: its constants, or zeros.
inline Tensor memory_of(const kir::Kernel& kernel, const kir::Buffer& buffer, int64_t batch) {
  if (buffer.role != kir::Buffer::Role::constants) {
    return Tensor(buffer.dtype, {buffer.elements.at(batch)});
  }
  return Tensor::of<int64_t>({std::ssize(kernel.constants)}, std::span(kernel.constants));
}

/// As Compiler::compile takes them.
inline std::vector<const kir::Kernel*> addresses(std::span<const kir::Kernel> kernels) {
  std::vector<const kir::Kernel*> all;
  for (const kir::Kernel& kernel : kernels) all.push_back(&kernel);
  return all;
}

}  // namespace fluid::testing
