#include "executor/cpu/cpu_target.h"

#include <algorithm>

#include "executor/cpu_libraries/library.h"
#include "executor/host/parallel.h"
#include "ops/loops.h"
#include "ops/table.h"

namespace fluid {
namespace {

constexpr double kCallSeconds = 2e-6;  // overhead of one parallel region
// Fraction of peak FLOP/s that a generated, register-tiled contraction reaches.
constexpr double kGeneratedEfficiency = 0.6;
// kGeneratedEfficiency is multiplied by this factor if no tensor fits in the L2 cache.
constexpr double kOutOfCache = 0.1;
// kGeneratedEfficiency is multiplied by this factor if the memory layout of a tensor is not
// row-major.
constexpr double kOtherLayout = 0.25;
// kGeneratedEfficiency is multiplied by this factor if an operand index contains a floordiv of the
// innermost result axis's index, as in the gradient of a strided convolution. Such reads are not
// contiguous.
constexpr double kDividedIndex = 0.1;
// A sum over several axes, such as a convolution, of n terms reaches n / (n + kTermsAtHalf) of
// kGeneratedEfficiency. Measured on Zen 4: convolutions reach 0.1 of the peak with 9 terms, 0.17
// with 25, 0.45 with 363 and 0.6 from 1,600 on.
constexpr double kTermsAtHalf = 60;

std::vector<Type> types_of(const ir::Op& op, bool results) {
  std::vector<Type> types;
  if (results) {
    for (const ir::Result& r : op.results) types.push_back(r.type);
  } else {
    for (const Value& v : op.operands) types.push_back(v.type());
  }
  return types;
}

/// Whether `op` is a Reduce whose body contains a floordiv of the innermost result axis's index.
bool divides_innermost_index(const ir::Op& op) {
  if (!std::holds_alternative<Reduce>(*def_of(op).lower)) return false;
  const Lowered lowered = lower_op(op);
  const auto innermost = static_cast<int64_t>(lowered.out.size()) - 1;
  bool divides = false;
  for_each_node(lowered.bodies[0], [&](const Expr& e) {
    if (e.op() != ScalarOp::floordiv) return;
    for_each_node(e, [&](const Expr& inner) {
      divides |= inner.op() == ScalarOp::var && inner.node().ivalue == innermost;
    });
  });
  return divides;
}

/// Returns the fraction of kGeneratedEfficiency that a sum over several axes reaches, by the number
/// of its terms, and by the lanes that the innermost result axis fills. Measured on an Intel Xeon:
/// a convolution of 512 to 512 channels with 4x4 results reaches 0.06 of the peak.
double sum_efficiency(const ir::Op& op, int lanes) {
  if (!std::holds_alternative<Reduce>(*def_of(op).lower)) return 1;
  const Lowered lowered = lower_op(op);
  if (lowered.reduce.size() < 2) return 1;
  double terms = 1;
  for (const Dim& d : lowered.reduce) terms *= static_cast<double>(d.at(1));
  const auto width = static_cast<double>(lowered.out.back().at(1));
  return terms / (terms + kTermsAtHalf) * std::min(width / lanes, 1.0);
}

}  // namespace

CpuTarget::CpuTarget(TargetDescription description, std::unique_ptr<KernelTuner> tuner)
    : cpu_(std::move(description)),
      kernels_(std::make_unique<KernelCache>(cpu_accumulators(cpu_.vector_bits))),
      tuner_(std::move(tuner)) {}

bool CpuTarget::matches_host_isa() const { return cpu_.has_same_isa(describe_host(cpu_.threads)); }

std::vector<KernelCandidate> CpuTarget::candidates(const ir::Op& op,
                                                   const EpilogueOps& epilogue) const {
  return tuner_ ? times(op, epilogue).libraries : predicted_candidates(op, epilogue);
}

double CpuTarget::generated_seconds(const ir::Op& op) const {
  if (!tuner_ || def_of(op).kernels->empty()) return predicted_generated_seconds(op);
  return times(op, {}).generated;
}

KernelTimes CpuTarget::times(const ir::Op& op, const EpilogueOps& epilogue) const {
  return tuner_->measured({.op = op,
                           .epilogue = epilogue,
                           .libraries = predicted_candidates(op, epilogue),
                           .generated = predicted_generated_seconds(op)});
}

std::vector<KernelCandidate> CpuTarget::predicted_candidates(const ir::Op& op,
                                                             const EpilogueOps& epilogue) const {
  if (!matches_host_isa()) return {};
  const ScopedLibraryThreads guard(cpu_.threads);
  double touched = 0;
  for (const bool results : {false, true}) {
    for (const Type& t : types_of(op, results)) touched += static_cast<double>(t.bytes_at(1));
  }
  return library_candidates(op, epilogue, cpu_, cpu_.bytes_per_second(touched));
}

double CpuTarget::predicted_generated_seconds(const ir::Op& op) const {
  const std::vector<Type> in = types_of(op, false);
  const std::vector<Type> out = types_of(op, true);
  const Cost cost = (*def_of(op).cost)(CostCtx{in, out, op.attrs});
  double bytes = cost.bytes;
  int64_t widest = 1;
  double touched = 0;
  // Generated code has no cache blocking. A contraction is slow if no tensor fits in the L2 cache.
  bool out_of_cache = !def_of(op).kernels->empty();
  for (const auto* types : {&in, &out}) {
    for (const Type& t : *types) {
      touched += static_cast<double>(t.bytes_at(1));
      out_of_cache &= t.bytes_at(1) >= cpu_.l2_bytes;
      if (is_float(t.dtype)) widest = std::max(widest, size_of(compute_dtype(t.dtype)));
    }
  }
  if (bytes < 0) bytes = touched;
  const double flops_rate =
      cpu_.ops_per_second(DType::f32) * 4.0 / static_cast<double>(std::max<int64_t>(widest, 4)) *
      kGeneratedEfficiency * (out_of_cache ? kOutOfCache : 1) *
      (def_of(op).kernels->empty() ? 1 : sum_efficiency(op, cpu_.vector_bits / 32)) *
      (divides_innermost_index(op) ? kDividedIndex : 1);
  const auto has_layout = [](const Type& t) { return t.layout.has_value(); };
  const bool other_layout = !def_of(op).kernels->empty() && (std::ranges::any_of(in, has_layout) ||
                                                             std::ranges::any_of(out, has_layout));
  return kCallSeconds + std::max(cost.flops / flops_rate, bytes / cpu_.bytes_per_second(touched)) /
                            (other_layout ? kOtherLayout : 1);
}

int64_t CpuTarget::scratch_bytes(const ir::Op& fused, int64_t batch) const {
  if (fused.attrs.has("kernel"))
    return 0;  // KernelCandidate::workspace is the workspace of a library kernel
  return scratch_layout(kernels_->kernel_of(fused), batch).bytes;
}

}  // namespace fluid
