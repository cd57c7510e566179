#include "executor/device/kernel_cache.h"

#include "codegen/schedule.h"
#include "ir/print.h"
#include "passes/memory_plan.h"

namespace fluid {
namespace {

/// Serialises the properties of `body` that determine its kernel: ops, attributes and types. Omits
/// source locations and the names of values.
std::string content_of(const ir::Graph& body) {
  std::map<const ir::Op*, size_t> number;
  std::string text;
  const auto add = [&](const Value& v) {
    text += ' ' + std::to_string(number.at(v.op())) + '.' + std::to_string(v.index());
  };
  for (const auto& op : body.ops) {
    text += op->name;
    for (const Value& v : op->operands) add(v);
    for (const auto& [name, attr] : op->attrs) text += ' ' + name + '=' + ir::print(attr);
    for (const ir::Result& r : op->results) text += ' ' + r.type.str();
    text += '\n';
    number.emplace(op.get(), number.size());
  }
  for (const ir::Output& o : body.outputs) add(o.value);
  return text;
}

}  // namespace

KernelCache::KernelCache(int64_t accumulators)
    : KernelCache([accumulators](const ir::Graph& body, const std::string& name) {
        return Kernels{schedule(body, name, accumulators)};
      }) {}

const KernelCache::Kernels& KernelCache::kernels_of(const ir::Op& fused) {
  const auto& name = fused.attrs.get<GraphRef>("body").name;
  const ir::Graph* body = fused.graph()->program().find(name);
  check(body != nullptr, [&] { return "fused op without its body '" + name + "'"; });
  const std::string content = content_of(*body);
  const std::scoped_lock lock(mutex_);
  std::unique_ptr<const Kernels>& kernels = kernels_[content];
  if (!kernels) kernels = std::make_unique<const Kernels>(schedule_(*body, "kernel"));
  return *kernels;
}

int KernelCache::size() const {
  const std::scoped_lock lock(mutex_);
  return static_cast<int>(kernels_.size());
}

ScratchLayout scratch_layout(const kir::Kernel& kernel, int64_t batch) {
  ScratchLayout layout;
  for (const kir::Buffer& b : kernel.buffers) {
    if (b.role != kir::Buffer::Role::scratch) continue;
    layout.offsets.push_back(layout.bytes);
    layout.bytes += align_up(b.elements.at(batch) * size_of(b.dtype));
  }
  return layout;
}

}  // namespace fluid
