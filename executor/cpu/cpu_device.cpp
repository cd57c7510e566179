#include "executor/cpu/cpu_device.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>

#include "executor/cpu/cpu_executable.h"
#include "executor/cpu/cpu_target.h"
#include "executor/cpu/host_memory.h"
#include "executor/cpu_libraries/library.h"
#include "executor/device/step_times.h"
#include "executor/host/parallel.h"

namespace fluid {
namespace {

constexpr int64_t kBandwidthWords = int64_t{1} << 25;  // elements of the benchmark's array; 256 MiB
constexpr int kBandwidthPasses = 4;

void increment_words(void* words, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) ++static_cast<uint64_t*>(words)[i];
}

/// Measures the memory bandwidth in bytes/s, counting reads and writes. Returns the best of several
/// passes.
double memory_bandwidth(int threads) {
  const auto memory = std::make_unique_for_overwrite<uint64_t[]>(kBandwidthWords);
  std::memset(memory.get(), 0, kBandwidthWords * sizeof(uint64_t));
  int64_t best = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < kBandwidthPasses; ++i) {
    const int64_t begin = clock_ns();
    parallel_for(kBandwidthWords, threads, increment_words, memory.get());
    best = std::min(best, clock_ns() - begin);
  }
  return 1e9 * static_cast<double>(2 * kBandwidthWords * sizeof(uint64_t)) /
         static_cast<double>(best);
}

/// Returns the peak rates of all threads of `cpu` together. Takes the FLOP/s from the description,
/// and measures the memory bandwidth on an array larger than the caches.
Limits cpu_limits(const TargetDescription& cpu) {
  const double flops = cpu.gflops_f32 * 1e9 * cpu.threads;
  return {.flops_f64 = flops / 2,
          .flops_f32 = flops,
          .flops_f16 = flops,  // f16 is computed in f32
          .flops_bf16 = cpu.bf16 ? 2 * flops : flops,
          .bytes = memory_bandwidth(cpu.threads)};
}

class CpuDevice : public Device {
 public:
  explicit CpuDevice(const CpuDeviceOptions& options)
      : threads_(thread_count(options.threads)),
        collectives_are_local_(options.collectives_are_local),
        communicator_(options.communicator),
        target_(options.baseline_cpu ? options.baseline_cpu->description : describe_host(threads_)),
        compiler_({.cache_dir = options.cache_dir,
                   .threads = threads_,
                   .cpu = options.baseline_cpu ? options.baseline_cpu->name : ""}) {
    check_spare_memory();
    if (options.communicator != nullptr) collective_queue_.emplace(*options.communicator);
  }

  const Target& target() const override { return target_; }
  int threads() const override { return threads_; }
  std::shared_ptr<PlaceMemory> allocate_memory(const Regions& regions) const override {
    return std::make_shared<HostMemory>(regions);
  }

  std::unique_ptr<Executable> compile(const ir::Program& final_program, const MemoryPlan& plan,
                                      const Options& options) override {
    check_spare_memory();
    start_pool(threads_);
    const ScopedLibraryThreads guard(threads_);
    auto built = std::make_unique<CpuExecutable>(final_program, plan, options, target_.kernels(),
                                                 compiler_, threads_,
                                                 collective_queue_ ? &*collective_queue_ : nullptr);
    if (collectives_are_local_) built->observe_collectives();
    return built;
  }

  void broadcast(std::byte* at, int64_t bytes) override {
    check(communicator_ != nullptr, "a single process has no communicator");
    communicator_->broadcast(at, bytes, 0);
  }

  CompileReport report() const override {
    const CompileStats stats = compiler_.stats();
    return {0, stats.ms, stats.compiled, stats.cache_hits};
  }

  Limits limits() const override { return cpu_limits(describe_host(threads_)); }

 private:
  int threads_;
  bool collectives_are_local_;
  Communicator* communicator_;
  CpuTarget target_;
  Compiler compiler_;
  std::optional<CollectiveQueue> collective_queue_;
};

}  // namespace

std::unique_ptr<Device> cpu_device(const CpuDeviceOptions& options) {
  return std::make_unique<CpuDevice>(options);
}

}  // namespace fluid
