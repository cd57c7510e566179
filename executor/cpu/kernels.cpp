#include "executor/cpu/kernels.h"

#include <fmt/format.h>
#include <xxhash.h>

#include "codegen/schedule.h"

namespace fluid {

kir::Kernel kernel_of(const ir::Op& fused) {
  const auto& body = fused.attrs.get<GraphRef>("body");
  const ir::Graph* graph = fused.graph()->program().find(body.name);
  check(graph != nullptr, "fused op without its body '" + body.name + "'");
  kir::Kernel kernel = schedule(*graph, "k");
  const std::string text = kir::print(kernel);
  kernel.name = fmt::format("k_{:016x}", XXH3_64bits(text.data(), text.size()));
  return kernel;
}

ScratchLayout scratch_layout(const kir::Kernel& kernel, int64_t batch) {
  ScratchLayout layout;
  for (const kir::Buffer& b : kernel.buffers) {
    if (b.role != kir::Buffer::Role::scratch) continue;
    layout.offsets.push_back(layout.bytes);
    layout.bytes += (b.elements.at(batch) * size_of(b.dtype) + 63) / 64 * 64;
  }
  return layout;
}

}  // namespace fluid
