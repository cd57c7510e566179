#include "executor/gpu/gpu_device.h"

#include <algorithm>
#include <iterator>

#include "codegen/compiler.h"
#include "executor/gpu/gpu_executable.h"
#include "executor/gpu/gpu_place_memory.h"
#include "executor/gpu/gpu_target.h"

namespace fluid {
namespace {

FluidGpuDescription describe(const FluidGpuTable& table, int device) {
  FluidGpuDescription description = {};
  check_gpu(table, table.describe(device, &description));
  return description;
}

FluidGpuVersions versions_of(const FluidGpuTable& table) {
  FluidGpuVersions versions = {};
  check_gpu(table, table.versions(&versions));
  return versions;
}

/// Whether library algorithms are chosen by timing. Requires a disk cache for the choices:
/// otherwise the next run might choose other algorithms, and its results would differ bitwise.
bool tunes_algorithms(const GpuDeviceOptions& options) {
  return options.tune && !options.cache_dir.empty();
}

class GpuDevice : public Device {
 public:
  GpuDevice(const FluidGpuTable& table, const GpuDeviceOptions& options)
      : host_threads_(options.host_threads),
        target_(describe(table, options.device), options.libraries,
                [this](const GpuTask& task) { return selector_.rejection_reason(task); }),
        gpu_(std::make_shared<const OpenGpu>(table, options.device)),
        kernels_(gpu_, target_.arch(), versions_of(table).linker,
                 ObjectCache::open_kernel_cache(options.cache_dir, CompilerOptions().cache_limit)),
        selector_(gpu_,
                  {{.machine = gpu_fingerprint(describe(table, options.device), versions_of(table)),
                    .workspace = target_.max_workspace(),
                    .tune = tunes_algorithms(options)},
                   cache_of(options),
                   options.tuning_record}),
        feeds_(std::make_shared<const GpuFeeds>(gpu_)) {
    if (options.peers.host_communicator == nullptr) return;
    collectives_ = std::make_shared<GpuCollectives>(gpu_, options.peers);
  }

  const Target& target() const override { return target_; }
  int threads() const override { return host_threads_; }
  std::shared_ptr<PlaceMemory> allocate_memory(const RegionSizes& regions) const override {
    return std::make_shared<GpuPlaceMemory>(gpu_, regions);
  }

  std::unique_ptr<Executable> compile(const ir::Program& final_program, const MemoryPlan& plan,
                                      const Options& options) override {
    if (options.guard_plan) throw UserError("plans are verified on the CPU only: omit --place");
    if (!libraries_compute(final_program, options)) return nullptr;
    return std::make_unique<GpuExecutable>(final_program, plan, options, gpu_, target_.kernels(),
                                           kernels_, selector_, collectives_, feeds_);
  }

  void broadcast(std::byte* at, int64_t bytes) override {
    check(collectives_ != nullptr, "a single process has no communicator");
    collectives_->broadcast(at, bytes);
  }

  CompileReport report() const override {
    CompileReport report = kernels_.report();
    report.library_rejections = target_.rejection_messages();
    std::ranges::copy(selector_.notes(), std::back_inserter(report.library_rejections));
    return report;
  }
  std::map<std::string, std::string> tuning_record() const override {
    return selector_.record().entries();
  }
  std::vector<std::pair<std::string, int64_t>> memory_outside_arenas() const override {
    return gpu_->memory_tracker.bytes_by_owner();
  }
  int64_t pinned_bytes() const override {
    return gpu_->gpu.allocated_bytes(GpuMemory::Location::host);
  }
  bool adopt_tuning_record(const std::map<std::string, std::string>& entries) override {
    return selector_.adopt_tuning_record(entries);
  }
  PeakRates peak_rates() const override {
    return {.flops_f64 = target_.f64_rate(),
            .flops_f32 = target_.f32_matmul_rate(),
            .flops_f16 = target_.half_matmul_rate(),
            .flops_bf16 = target_.half_matmul_rate(),
            .bytes_per_second = target_.memory_rate(),
            .tf32 = target_.tf32()};
  }

 private:
  /// Whether the GPU libraries have an algorithm for every op that was assigned to a library.
  bool libraries_compute(const ir::Program& program, const Options& options) {
    return gpu_->memory_tracker.measure("libraries", [&] {
      bool all = true;
      for (const auto& op : program.main().ops) {
        if (!op->attrs.has("kernel")) continue;
        const GpuLibraryCall call(*op, options.batch, options.tf32);
        all &= selector_.has_algorithm(call.task, call.workspace);
      }
      return all;
    });
  }

  static ObjectCache cache_of(const GpuDeviceOptions& options) {
    return {options.cache_dir, CompilerOptions().cache_limit};
  }

  int host_threads_;
  GpuTarget target_;
  std::shared_ptr<const OpenGpu> gpu_;
  GpuKernels kernels_;
  GpuAlgorithmSelector selector_;
  std::shared_ptr<const GpuFeeds> feeds_;
  std::shared_ptr<GpuCollectives> collectives_;  ///< null if there is only one rank
};

}  // namespace

std::unique_ptr<Device> gpu_device(const FluidGpuTable& table, const GpuDeviceOptions& options) {
  return std::make_unique<GpuDevice>(table, options);
}

}  // namespace fluid
