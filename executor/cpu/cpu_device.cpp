#include "executor/cpu/cpu_device.h"

#include "executor/cpu/cpu_executable.h"
#include "executor/cpu/cpu_limits.h"
#include "executor/cpu/cpu_target.h"
#include "executor/cpu/host_memory.h"
#include "executor/cpu/library.h"
#include "executor/cpu/parallel.h"

namespace fluid {
namespace {

class CpuDevice : public Device {
 public:
  explicit CpuDevice(const CpuDeviceOptions& options)
      : threads_(thread_count(options.threads)),
        trial_(options.trial),
        communicator_(options.communicator),
        target_(options.baseline_cpu ? options.baseline_cpu->description : describe_host(threads_)),
        compiler_({.cache_dir = options.cache_dir,
                   .threads = threads_,
                   .cpu = options.baseline_cpu ? options.baseline_cpu->name : ""}) {
    check_spare_memory();
    if (options.communicator != nullptr) exchanges_.emplace(*options.communicator);
  }

  const Target& target() const override { return target_; }
  int threads() const override { return threads_; }
  std::shared_ptr<PlaceMemory> memory(const Regions& regions) const override {
    return std::make_shared<HostMemory>(regions);
  }

  std::unique_ptr<Executable> build(const ir::Program& final_program, const MemoryPlan& plan,
                                    const Options& options) override {
    check_spare_memory();
    start_pool(threads_);
    const LibraryThreads guard(threads_);
    auto built =
        std::make_unique<CpuExecutable>(final_program, plan, options, target_.kernels(), compiler_,
                                        threads_, exchanges_ ? &*exchanges_ : nullptr);
    if (trial_) built->watch_collectives();
    return built;
  }

  void broadcast(std::byte* at, int64_t bytes) override {
    check(communicator_ != nullptr, "a process that is alone has nobody to send to");
    communicator_->broadcast(at, bytes, 0);
  }

  CompileReport report() const override {
    const CompileStats stats = compiler_.stats();
    return {0, stats.ms, stats.compiled, stats.from_cache};
  }

  Limits limits() const override { return cpu_limits(describe_host(threads_)); }

 private:
  int threads_;
  bool trial_;
  Communicator* communicator_;
  CpuTarget target_;
  Compiler compiler_;
  std::optional<CollectiveQueue> exchanges_;
};

}  // namespace

std::unique_ptr<Device> cpu_device(const CpuDeviceOptions& options) {
  return std::make_unique<CpuDevice>(options);
}

}  // namespace fluid
