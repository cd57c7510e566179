#include "executor/cpu/kernel_trial.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "executor/cpu_libraries/library.h"
#include "executor/device/random_bytes.h"
#include "executor/host/parallel.h"
#include "ir/stopwatch.h"
#include "passes/compose.h"
#include "passes/memory_plan.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

constexpr double kBudgetMs = 300;  // of the rounds of one kind

/// Rounds of trials. Each round runs the trials whose shortest time is at most `limit` times the
/// shortest time of all.
struct Rounds {
  int min, max;  ///< bounds of the number of rounds
  double limit;
};
constexpr Rounds kFirst = {.min = 2, .max = 10, .limit = 2};
// Further rounds decide between trials whose times are close.
constexpr Rounds kClose = {.min = 1, .max = 40, .limit = 1.15};

/// A program that holds the ops of `chain` as one fused op, its last op. If `kernel` is not null,
/// the head of the chain has the layouts that `kernel` requires.
std::unique_ptr<ir::Program> fused_copy(const KernelTrial::Chain& chain,
                                        const KernelCandidate* kernel) {
  auto program = concrete_copy(chain, 1);
  const auto& ops = program->main().ops;
  const size_t first = ops.size() - chain.size();
  if (kernel != nullptr) {
    ir::Op& head = *ops[first];
    for (size_t i = 0; i < head.operands.size(); ++i) {
      const Value operand = head.operands[i];
      operand.op()->results.at(static_cast<size_t>(operand.index())).type.layout =
          kernel->operands.at(i);
    }
    head.results.at(0).type.layout = kernel->results.at(0);
  }
  KernelTrial::Chain copies;
  for (size_t i = first; i < ops.size(); ++i) copies.push_back(ops[i].get());
  const Value result = ops.back()->result();
  ir::Op* fused = append_fused(*program, copies, {result}, "");
  if (kernel != nullptr) fused->attrs.set("kernel", kernel->kernel);
  return program;
}

const ir::Op& fused_of(const ir::Program& program) { return *program.main().ops.back(); }

}  // namespace

KernelTrial::KernelTrial(const Chain& chain, const KernelCandidate& kernel, int threads)
    : program_(fused_copy(chain, &kernel)) {
  const ScopedLibraryThreads guard(threads);
  const LibraryRoutine routine = library_kernel(fused_of(*program_), 1);
  const std::vector<void*> buffers = allocate(routine.workspace);
  kernel_ = [call = routine.bind(buffers.data(), buffers.back()), threads] {
    const ScopedLibraryThreads while_running(threads);
    call.run();
  };
}

KernelTrial::KernelTrial(const Chain& chain, KernelCache& kernels, Compiler& compiler, int threads)
    : program_(fused_copy(chain, nullptr)) {
  const kir::Kernel& kernel = kernels.kernel_of(fused_of(*program_));
  const ScratchLayout scratch = scratch_layout(kernel, 1);
  std::vector<void*> buffers = allocate(scratch.bytes);
  auto* const workspace = static_cast<std::byte*>(buffers.back());
  buffers.pop_back();
  std::vector<int64_t> constants = kernel.constants;
  auto offset = scratch.offsets.begin();
  for (const kir::Buffer& buffer : kernel.buffers) {
    if (buffer.role == kir::Buffer::Role::scratch) buffers.push_back(workspace + *offset++);
    if (buffer.role == kir::Buffer::Role::constants) buffers.push_back(constants.data());
  }
  check(buffers.size() == kernel.buffers.size(), "a kernel on trial checks indices");
  const int64_t blocks = kir::evaluate(kernel.blocks, 1);
  const double flops = kernel.flops_per_block * static_cast<double>(blocks);
  kernel_ = [buffers, blocks, constants = std::move(constants), compiled = compiler.compile(kernel),
             threads = pays_for_threads(flops) ? threads : 1] {
    run_blocks(compiled, buffers.data(), 1, blocks, threads);
    if (compiled.finish != nullptr) compiled.finish(buffers.data(), 1, 0, 0);
  };
}

std::vector<void*> KernelTrial::allocate(int64_t workspace) {
  const ir::Op& fused = fused_of(*program_);
  std::vector<int64_t> offsets;
  int64_t end = 0;
  const auto add = [&](int64_t bytes) {
    offsets.push_back(end);
    end += align_up(bytes);
  };
  for (const Value& v : fused.operands) add(v.type().bytes_at(1));
  const int64_t operand_bytes = end;
  for (const ir::Result& r : fused.results) add(r.type.bytes_at(1));
  add(workspace);
  memory_ = Arena(end);
  fill_with_random_floats({memory_.data(), static_cast<size_t>(operand_bytes)});
  std::vector<void*> buffers;
  for (const int64_t offset : offsets) buffers.push_back(memory_.data() + offset);
  return buffers;
}

double KernelTrial::run() const {
  const Stopwatch watch;
  kernel_();
  return watch.ms() / 1e3;
}

std::vector<double> shortest_seconds(const std::vector<std::unique_ptr<KernelTrial>>& trials) {
  for (const auto& trial : trials) trial->run();  // touches the memory of the results
  std::vector<double> shortest(trials.size(), std::numeric_limits<double>::infinity());
  double best = std::numeric_limits<double>::infinity();
  const auto run_round = [&](double limit) {
    for (size_t i = 0; i < trials.size(); ++i) {
      if (!std::isinf(shortest[i]) && shortest[i] > limit * best) continue;
      shortest[i] = std::min(shortest[i], trials[i]->run());
      best = std::min(best, shortest[i]);
    }
  };
  for (const Rounds& rounds : {kFirst, kClose}) {
    const Stopwatch watch;
    for (int i = 0; i < rounds.max && (i < rounds.min || watch.ms() < kBudgetMs); ++i) {
      run_round(rounds.limit);
    }
  }
  return shortest;
}

}  // namespace fluid
