#include "passes/packing.h"

#include <algorithm>

#include "ops/internal_functions.h"
#include "ops/table.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

// Maximum ratio of the times with and without packing. Times within 3 % are tied.
constexpr double kMaxTimeRatio = 1.03;
// Maximum fraction of padding in a packed tensor.
constexpr double kMaxPadding = 0.125;

bool has_little_padding(Type type, const std::optional<Layout>& layout) {
  const auto bytes = static_cast<double>(type.bytes_at(1));
  type.layout = layout;
  return static_cast<double>(type.bytes_at(1)) <= (1 + kMaxPadding) * bytes;
}

bool accepts_other_layouts(const KernelCandidate& kernel, const ir::Op& op,
                           FunctionRef<bool(Value)> may_pack) {
  if (kernel.results.at(0) != op.results[0].type.layout) return false;
  for (size_t i = 0; i < kernel.operands.size(); ++i) {
    const Value v = op.operands[i];
    if (kernel.operands[i] == v.type().layout) continue;
    if (!may_pack(v) || !has_little_padding(v.type(), kernel.operands[i])) return false;
  }
  return true;
}

}  // namespace

std::optional<PackingKernel> packing_kernel(const ir::Op& op, int64_t batch, const Target& target,
                                            FunctionRef<bool(Value)> may_pack) {
  if (def_of(op).kernels->empty() || op.results.size() != 1) return std::nullopt;
  if (std::ranges::none_of(op.operands, [&](Value v) { return may_pack(v); })) return std::nullopt;
  const auto alone = concrete_copy({&op}, batch);
  const ir::Op& copy = *alone->main().ops.back();
  double current = target.generated_seconds(copy);
  std::optional<KernelCandidate> packing;
  for (KernelCandidate& candidate : target.candidates(copy, {})) {
    if (candidate.accepts_layouts(copy, copy)) {
      current = std::min(current, candidate.seconds);
    } else if (!packing && !candidate.mixes_samples &&
               accepts_other_layouts(candidate, op, may_pack)) {
      packing = std::move(candidate);
    }
  }
  if (!packing || packing->seconds > kMaxTimeRatio * current) return std::nullopt;
  return PackingKernel{std::move(*packing), current};
}

Value PackedCopies::get(Value v, const std::optional<Layout>& layout) {
  Value& copy = copies_[{v, layout ? layout->str() : ""}];
  if (!copy) {
    copy = internal::copy(v, v.op()->loc);
    copy.op()->results[0].type.layout = layout;
  }
  return copy;
}

}  // namespace fluid
