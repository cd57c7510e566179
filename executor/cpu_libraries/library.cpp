#include "executor/cpu_libraries/library.h"

#include <mutex>

#include "executor/cpu_libraries/amx_kernels.h"
#include "executor/cpu_libraries/direct.h"
#include "executor/cpu_libraries/winograd.h"
#include "executor/device/library_task.h"
#include "executor/host/arena.h"
#include "executor/host/parallel.h"
#include "ir/threads.h"

#ifdef FLUID_ONEDNN
#include "executor/cpu_libraries/onednn.h"
#endif

namespace fluid {

void check_spare_memory() {
  constexpr int64_t kSpare = int64_t{64} << 20;
  static std::mutex one_at_a_time;
  const std::scoped_lock lock(one_at_a_time);
  const Arena given_back(kSpare);
}

#ifdef FLUID_ONEDNN

namespace {

std::vector<KernelCandidate> onednn_candidates_of(const ir::Op& op, const EpilogueOps& epilogue,
                                                  const TargetDescription& cpu,
                                                  double bytes_per_second) {
  check_spare_memory();
  return onednn_candidates(op, epilogue,
                           {.flops_per_second = cpu.ops_per_second(DType::f32),
                            .bf16_flops_per_second = cpu.ops_per_second(DType::bf16),
                            .bytes_per_second = bytes_per_second,
                            .vector_lanes = cpu.vector_bits / 32});
}

LibraryRoutine onednn_routine(std::string_view kernel, const LibraryBody& body, int64_t batch) {
  check_spare_memory();
  return onednn_kernel(kernel, *body.head, body.epilogue, batch);
}

}  // namespace

std::string library_version() { return onednn_version(); }

std::string library_settings() { return onednn_settings(); }

#else

namespace {

std::vector<KernelCandidate> onednn_candidates_of(const ir::Op&, const EpilogueOps&,
                                                  const TargetDescription&, double) {
  return {};
}

LibraryRoutine onednn_routine(std::string_view kernel, const LibraryBody&, int64_t) {
  throw InternalError("this build has no library for a fused op of kernel '" + std::string(kernel) +
                      "'");
}

}  // namespace

std::string library_version() { return ""; }

std::string library_settings() { return ""; }

#endif

std::vector<KernelCandidate> library_candidates(const ir::Op& op, const EpilogueOps& epilogue,
                                                const TargetDescription& cpu,
                                                double bytes_per_second) {
  std::vector<KernelCandidate> candidates =
      onednn_candidates_of(op, epilogue, cpu, bytes_per_second);
  const double flops_per_second = cpu.ops_per_second(DType::f32);
  std::ranges::move(winograd_candidates(op, epilogue, flops_per_second),
                    std::back_inserter(candidates));
  std::ranges::move(direct_candidates(op, epilogue, flops_per_second, bytes_per_second),
                    std::back_inserter(candidates));
  std::ranges::move(amx_candidates(op, epilogue, cpu.ops_per_second(DType::bf16), bytes_per_second),
                    std::back_inserter(candidates));
  std::ranges::stable_sort(candidates, std::less(), &KernelCandidate::seconds);
  return candidates;
}

LibraryRoutine library_kernel(const ir::Op& fused, int64_t batch) {
  const LibraryBody body(fused);
  const auto name = fused.attrs.get<std::string>("kernel");
  auto routine = winograd_kernel(name, *body.head, body.epilogue, batch);
  if (!routine) routine = direct_kernel(name, *body.head, body.epilogue, batch);
  if (!routine) routine = amx_kernel(name, *body.head, body.epilogue, batch);
  if (!routine) routine = onednn_routine(name, body, batch);
  const size_t operands = fused.operands.size();
  LibraryBinder bind = [=, bind_own = std::move(routine->bind)](void* const* buffers,
                                                                void* workspace) {
    std::vector<size_t> order = body.buffers;
    order.push_back(operands);
    std::vector<void*> own(order.size());
    const auto select = [order](void* const* from, std::vector<void*>& to) {
      for (size_t i = 0; i < order.size(); ++i) to[i] = from[order[i]];
    };
    select(buffers, own);
    LibraryCall call = bind_own(own.data(), workspace);
    if (!call.rebind) return call;
    call.rebind = [select, own, rebind_own = std::move(call.rebind)](void* const* to) mutable {
      select(to, own);
      rebind_own(own.data());
    };
    return call;
  };
  return {std::move(bind), routine->workspace};
}

std::vector<LibraryRoutine> library_kernels(std::span<const ir::Op* const> fused, int64_t batch,
                                            int threads) {
  std::vector<LibraryRoutine> kernels(fused.size());
  run_tasks(fused.size(), static_cast<size_t>(threads), [&](size_t i) {
    const ScopedLibraryThreads guard(threads);  // a setting of the calling thread
    kernels[i] = library_kernel(*fused[i], batch);
  });
  return kernels;
}

}  // namespace fluid
