#include "executor/cpu/library.h"

#ifdef FLUID_ONEDNN
#include "executor/cpu/onednn.h"
#include "executor/cpu/onednn_winograd.h"
#include "ops/table.h"
#endif

namespace fluid {

#ifdef FLUID_ONEDNN

namespace {

/// The ops of a fused body and where the kernel's buffers are among the fused op's.
struct Body {
  std::vector<const ir::Op*> ops;  ///< the head, then its epilogue
  std::vector<size_t> buffers;     ///< operands of the fused op in the kernel's order

  explicit Body(const ir::Graph& graph) {
    for (const auto& op : graph.ops) {
      if (!std::holds_alternative<Source>(*def_of(*op).lower)) ops.push_back(op.get());
    }
    for (size_t i = 0; i < ops.size(); ++i) {
      for (const Value& v : ops[i]->operands) {
        if (i > 0 && v.op() == ops[i - 1]) continue;
        buffers.push_back(static_cast<size_t>(v.op()->attrs.get<int64_t>("index")));
      }
    }
  }
};

}  // namespace

std::vector<Claim> library_claims(const ir::Op& op, const Chain& epilogue,
                                  const TargetDescription& cpu, double bytes_per_second) {
  const OnednnRates rates = {.flops = cpu.gflops_f32 * 1e9 * cpu.threads,
                             .bytes = bytes_per_second,
                             .vector_lanes = cpu.vector_bits / 32};
  std::vector<Claim> claims = onednn_claims(op, epilogue, rates);
  std::ranges::move(winograd_claims(op, epilogue, rates), std::back_inserter(claims));
  std::ranges::stable_sort(claims, std::less(), &Claim::seconds);
  return claims;
}

std::string library_version() { return onednn_version(); }

LibraryRoutine library_kernel(const ir::Op& fused, int64_t batch) {
  const ir::Graph* graph = fused.graph()->program().find(fused.attrs.get<GraphRef>("body").name);
  check(graph != nullptr, "fused op without its body");
  const Body body(*graph);
  const Chain epilogue(body.ops.begin() + 1, body.ops.end());
  const auto name = fused.attrs.get<std::string>("kernel");
  auto routine = winograd_kernel(name, *body.ops.at(0), epilogue, batch);
  if (!routine) routine = onednn_kernel(name, *body.ops.at(0), epilogue, batch);
  const size_t operands = fused.operands.size();
  LibraryBinder bind = [=, bind_own = std::move(routine->bind)](void* const* buffers,
                                                                void* workspace) {
    std::vector<void*> own;
    for (const size_t i : body.buffers) own.push_back(buffers[i]);
    own.push_back(buffers[operands]);
    return bind_own(own.data(), workspace);
  };
  return {std::move(bind), routine->workspace};
}

#else

std::vector<Claim> library_claims(const ir::Op&, const Chain&, const TargetDescription&, double) {
  return {};
}

std::string library_version() { return ""; }

LibraryRoutine library_kernel(const ir::Op& fused, int64_t) {
  throw InternalError("this build has no library for a fused op of kernel '" +
                      fused.attrs.get<std::string>("kernel") + "'");
}

#endif

}  // namespace fluid
