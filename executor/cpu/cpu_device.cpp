#include "executor/cpu/cpu_device.h"

#include <fmt/format.h>

#include <limits>
#include <memory>

#include "executor/cpu/cpu_executable.h"
#include "executor/cpu/cpu_target.h"
#include "executor/cpu/host_memory.h"
#include "executor/cpu_libraries/library.h"
#include "executor/host/machine_file.h"
#include "executor/host/measure_rates.h"
#include "executor/host/parallel.h"

namespace fluid {
namespace {

/// Returns the peak FLOP/s and bytes/s of `cpu`, summed over its threads.
PeakRates cpu_peak_rates(const TargetDescription& cpu) {
  const double f32_flops = cpu.ops_per_second(DType::f32);
  return {.flops_f64 = cpu.ops_per_second(DType::f64),
          .flops_f32 = f32_flops,
          .flops_f16 = f32_flops,  // f16 is computed in f32
          .flops_bf16 = cpu.ops_per_second(DType::bf16),
          .bytes_per_second = cpu.bytes_per_second(std::numeric_limits<double>::infinity())};
}

/// Returns a description of this CPU with measured rates. The first call measures the rates.
TargetDescription measured_description(int threads) {
  static const TargetDescription measured = measure_host();
  return measured.with_threads(threads);
}

/// Returns the CPU description for the cost model.
TargetDescription description_for(const CpuDeviceOptions& options, int threads) {
  if (options.baseline_cpu) return options.baseline_cpu->description;
  const auto recorded = recorded_description(options.tuning_record, threads);
  TargetDescription own = recorded ? *recorded : machine_description(threads, options.cache_dir);
  if (options.communicator == nullptr) return own;
  // The first rank to propose a description sets it for all ranks with the same CPU, so that they
  // choose the same kernels.
  const std::string agreed = options.communicator->propose(kCpuRecord, cpu_tuning_record(own));
  return recorded_description({{kCpuRecord, agreed}}, threads).value_or(own);
}

/// Returns the tuner; null if nothing is measured and the record has no times of kernels.
std::unique_ptr<KernelTuner> tuner_for(const CpuDeviceOptions& options,
                                       const TargetDescription& cpu) {
  if (options.baseline_cpu) return nullptr;
  if (!options.tune && !has_kernel_times(options.tuning_record)) return nullptr;
  return std::make_unique<KernelTuner>(cpu,
                                       KernelTuner::Settings{.measures = options.tune,
                                                             .cache_dir = options.cache_dir,
                                                             .record = options.tuning_record,
                                                             .communicator = options.communicator});
}

CpuTarget target_for(const CpuDeviceOptions& options, int threads) {
  TargetDescription cpu = description_for(options, threads);
  std::unique_ptr<KernelTuner> tuner = tuner_for(options, cpu);
  return CpuTarget(std::move(cpu), std::move(tuner));
}

class CpuDevice : public Device {
 public:
  explicit CpuDevice(const CpuDeviceOptions& options)
      : threads_(thread_count(options.threads)),
        collectives_are_local_(options.collectives_are_local),
        communicator_(options.communicator),
        target_(target_for(options, threads_)),
        compiler_({.cache_dir = options.cache_dir,
                   .threads = threads_,
                   .cpu = options.baseline_cpu ? options.baseline_cpu->name : ""}) {
    check_spare_memory();
    if (options.communicator != nullptr) collective_queue_.emplace(*options.communicator);
  }

  const Target& target() const override { return target_; }
  int threads() const override { return threads_; }
  std::shared_ptr<PlaceMemory> allocate_memory(const RegionSizes& regions) const override {
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

  std::string fingerprint() const override {
    if (target_.tuner() != nullptr) return "";
    return fmt::format("{}{}{}{} threads, {}\n{}\n", to_json(target_.description()),
                       target_.matches_host_isa() ? "" : "not the host\n", compiler_.target_text(),
                       threads_, library_version(), library_settings());
  }

  CompileReport report() const override {
    const CompileStats stats = compiler_.stats();
    const KernelTuner* tuner = target_.tuner();
    return {.compile_ms = stats.ms,
            .kernels = stats.compiled,
            .cache_hits = stats.cache_hits,
            .timed_ops = tuner != nullptr ? tuner->timed_ops() : 0,
            .timing_ms = tuner != nullptr ? tuner->ms() : 0};
  }

  std::map<std::string, std::string> tuning_record() const override {
    std::map<std::string, std::string> record;
    if (target_.tuner() != nullptr) record = target_.tuner()->record();
    record.emplace(kCpuRecord, cpu_tuning_record(target_.description()));
    return record;
  }

  PeakRates peak_rates() const override {
    const TargetDescription& cpu = target_.description();
    return cpu_peak_rates(cpu.measured ? cpu : measured_description(threads_));
  }

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
