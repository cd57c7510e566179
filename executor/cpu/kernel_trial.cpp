#include "executor/cpu/kernel_trial.h"

#include <algorithm>
#include <limits>

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
    : threads_(threads), program_(fused_copy(chain, &kernel)) {
  const ScopedLibraryThreads guard(threads_);
  LibraryRoutine routine = library_kernel(fused_of(*program_), 1);
  bind_library_ = std::move(routine.bind);
  place_buffers(routine.workspace);
}

KernelTrial::KernelTrial(const Chain& chain, KernelCache& kernels, Compiler& compiler, int threads)
    : threads_(threads),
      program_(fused_copy(chain, nullptr)),
      kernel_(&kernels.kernel_of(fused_of(*program_))),
      compiled_(compiler.compile(*kernel_)),
      constants_(kernel_->constants) {
  place_buffers(scratch_layout(*kernel_, 1).bytes);
}

/// Computes the offsets of the operands and results of the fused op and of `workspace` bytes.
void KernelTrial::place_buffers(int64_t workspace) {
  const auto add = [&](int64_t bytes) {
    offsets_.push_back(bytes_);
    bytes_ += align_up(bytes);
  };
  const ir::Op& fused = fused_of(*program_);
  for (const Value& v : fused.operands) add(v.type().bytes_at(1));
  for (const ir::Result& r : fused.results) add(r.type.bytes_at(1));
  add(workspace);
}

void KernelTrial::bind(std::byte* memory) {
  buffers_.clear();
  for (const int64_t offset : offsets_) buffers_.push_back(memory + offset);
  if (bind_library_) {
    const ScopedLibraryThreads guard(threads_);
    library_ = bind_library_(buffers_.data(), buffers_.back());
    return;
  }
  auto* const workspace = static_cast<std::byte*>(buffers_.back());
  buffers_.pop_back();
  const ScratchLayout scratch = scratch_layout(*kernel_, 1);
  auto offset = scratch.offsets.begin();
  for (const kir::Buffer& buffer : kernel_->buffers) {
    if (buffer.role == kir::Buffer::Role::scratch) buffers_.push_back(workspace + *offset++);
    if (buffer.role == kir::Buffer::Role::constants) buffers_.push_back(constants_.data());
  }
  check(std::ssize(buffers_) == kir::argument_count(*kernel_), "a kernel on trial checks indices");
}

void KernelTrial::run_generated() const {
  const int64_t blocks = kir::evaluate(kernel_->blocks, 1);
  const double flops = kernel_->flops_per_block * static_cast<double>(blocks);
  run_blocks(compiled_, buffers_.data(), 1, blocks, pays_for_threads(flops) ? threads_ : 1);
  if (compiled_.finish != nullptr) compiled_.finish(buffers_.data(), 1, 0, 0);
}

double KernelTrial::run() const {
  const ScopedLibraryThreads guard(threads_);
  if (threads_ > 1) prepare_thread_pool(threads_);
  const Stopwatch watch;
  bind_library_ ? library_.run() : run_generated();
  return watch.ms() / 1e3;
}

std::vector<double> shortest_seconds(const std::vector<std::unique_ptr<KernelTrial>>& trials) {
  constexpr double kNotRun = std::numeric_limits<double>::infinity();
  std::vector<double> shortest(trials.size(), kNotRun);
  std::vector<bool> fails(trials.size());
  double best = kNotRun;
  const auto run_round = [&](double limit, bool counts) {
    for (size_t i = 0; i < trials.size(); ++i) {
      if (fails[i] || (shortest[i] != kNotRun && shortest[i] > limit * best)) continue;
      try {
        const double seconds = trials[i]->run();
        if (counts) shortest[i] = std::min(shortest[i], seconds);
      } catch (const DeviceError&) {
        fails[i] = true;
        shortest[i] = kNotRun;
      }
    }
    best = std::ranges::min(shortest);
  };
  if (trials.empty()) return shortest;
  run_round(kFirst.limit, false);  // touches the memory of the results
  for (const Rounds& rounds : {kFirst, kClose}) {
    const Stopwatch watch;
    for (int i = 0; i < rounds.max && (i < rounds.min || watch.ms() < kBudgetMs); ++i) {
      run_round(rounds.limit, true);
    }
  }
  return shortest;
}

}  // namespace fluid
