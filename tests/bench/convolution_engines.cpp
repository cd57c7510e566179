// Times the engines of cuDNN for the convolutions of the examples, on the first GPU:
//   fluid_convolution_engines [f32|tf32|bf16|f16]   (default: f32)
// Prints, for each convolution and each of its gradients, the engines in order of their time: those
// of the heuristics (A1, A2, ... and F1, F2, ... of the fallbacks), and every other engine with its
// default knobs (E). A star marks the engines of which Fluid times a configuration: at most eight
// that fit the planned workspace. Prints the notes for which Fluid leaves out others. Shows what
// another choice of engines, or more workspace, would gain.

#include "executor/cuda/convolution_engines.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/gpu_libraries/gpu_workspace.h"
#include "tests/support/example_convolutions.h"

namespace fluid::cuda {
namespace {

constexpr int64_t kWorkspace = int64_t{1} << 30;  // bytes; also the size of each tensor's memory
constexpr int kCalls = 4;                         // calls per engine; the shortest time counts
constexpr int64_t kMaxListed = 128;
constexpr int kMaxTimed = 8;  // kMaxAlgorithms of executor/gpu_libraries/gpu_trials.h

void require(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "fluid_convolution_engines: %s\n", what);
  std::exit(1);
}

void* gpu_memory() {
  void* memory = nullptr;
  require(cudaMalloc(&memory, kWorkspace) == cudaSuccess, "no GPU memory");
  require(cudaMemset(memory, 0x3c, kWorkspace) == cudaSuccess, "the GPU fails");
  return memory;
}

struct Candidate {
  std::string origin;
  DnnDescriptor configuration;
};

void add_heuristics(const ConvolutionDescription& description, cudnnHandle_t handle,
                    cudnnBackendHeurMode_t mode, const char* letter,
                    std::vector<Candidate>& candidates) {
  const DnnDescriptor heuristics = heuristics_of(description, DnnDevice(handle), mode);
  int number = 0;
  for (DnnDescriptor& configuration : heuristics.descriptors(
           CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, kMaxListed)) {
    candidates.push_back({letter + std::to_string(++number), std::move(configuration)});
  }
}

/// Adds every engine with its default knobs. `engines` keeps the descriptors alive.
void add_all(const ConvolutionDescription& description, std::vector<DnnDescriptor>& engines,
             std::vector<Candidate>& candidates) {
  const auto count =
      description.graph().value_or<int64_t>(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, 0);
  for (int64_t index = 0; index < count; ++index) {
    DnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, description.graph())
        .set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, index);
    engine.finalize();
    if (!engine.ok()) continue;
    DnnDescriptor configuration(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    configuration.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
    configuration.finalize();
    engines.push_back(std::move(engine));
    candidates.push_back({"E", std::move(configuration)});
  }
}

/// The names of an engine's numerical notes, and "compiled" if it is compiled at run time.
std::string notes_of(const DnnDescriptor& engine) {
  constexpr const char* kNames[] = {"tensor cores",
                                    "converts inputs",
                                    "reduced precision",
                                    "FFT",
                                    "not deterministic",
                                    "Winograd",
                                    "4 x 4",
                                    "6 x 6",
                                    "13 x 13",
                                    "strict NaN"};
  std::string text;
  const auto numerical = engine.values<cudnnBackendNumericalNote_t>(
      CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  for (const auto note : numerical.value_or(std::vector<cudnnBackendNumericalNote_t>())) {
    const auto i = static_cast<size_t>(note);
    text += std::string(", ") + (i < std::size(kNames) ? kNames[i] : "?");
  }
  const auto behaviour = engine.values<cudnnBackendBehaviorNote_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                                                   CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
  for (const auto note : behaviour.value_or(std::vector<cudnnBackendBehaviorNote_t>())) {
    if (note == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) text += ", compiled";
  }
  return text;
}

class Timing {
 public:
  Timing() {
    require(cudnnCreate(&handle_) == CUDNN_STATUS_SUCCESS, "no GPU, or no driver for it");
    for (void*& memory : memory_) memory = gpu_memory();
    require(cudaEventCreate(&begin_) == cudaSuccess && cudaEventCreate(&end_) == cudaSuccess,
            "no events");
  }

  void print(const testing::ConvolutionLayer& layer, const FluidGpuConvolution& convolution) {
    constexpr const char* kDirections[] = {"forward", "data gradient", "filter gradient"};
    std::printf("%s, %s: planned workspace %lld\n", layer.name, kDirections[convolution.direction],
                static_cast<long long>(workspace_for(convolution, kGpuWorkspace)));
    const ConvolutionDescription description(convolution, handle_);
    std::vector<DnnDescriptor> engines;
    std::vector<Candidate> candidates;
    add_heuristics(description, handle_, CUDNN_HEUR_MODE_A, "A", candidates);
    add_heuristics(description, handle_, CUDNN_HEUR_MODE_FALLBACK, "F", candidates);
    add_all(description, engines, candidates);
    const auto usable = convolution_engines(convolution, DnnDevice(handle_),
                                            workspace_for(convolution, kGpuWorkspace), kMaxTimed)
                            .algorithms;
    std::vector<std::pair<float, std::string>> lines;
    for (const Candidate& candidate : candidates) {
      if (auto line = time(candidate, description, usable)) lines.push_back(std::move(*line));
    }
    std::ranges::stable_sort(lines, {}, [](const auto& line) { return line.first; });
    for (const auto& [ms, text] : lines) std::printf("  %8.1f us  %s\n", 1e3 * ms, text.c_str());
    std::fflush(stdout);
  }

 private:
  /// The milliseconds of an engine, and what it is; nullopt if it cannot compute the convolution.
  std::optional<std::pair<float, std::string>> time(const Candidate& candidate,
                                                    const ConvolutionDescription& description,
                                                    const std::vector<FluidGpuAlgorithm>& usable) {
    const auto engines = candidate.configuration.descriptors(CUDNN_ATTR_ENGINECFG_ENGINE,
                                                             CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
    if (engines.empty()) return std::nullopt;
    DnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, candidate.configuration)
        .set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle_);
    plan.finalize();
    const auto workspace =
        plan.value_or<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, kWorkspace + 1);
    if (!plan.ok() || workspace > kWorkspace) return std::nullopt;
    float best = INFINITY;
    for (int call = 0; call < kCalls; ++call) {
      const std::optional<float> ms = run(plan, description);
      if (!ms) return std::nullopt;
      best = std::min(best, *ms);
    }
    const auto index = engines.front().value_or<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, -1);
    const bool used = std::ranges::any_of(usable, [&](const FluidGpuAlgorithm& algorithm) {
      return static_cast<int32_t>(algorithm.opaque[0]) == index;
    });
    return std::pair(best, candidate.origin + (used ? " *" : "  ") + " engine " +
                               std::to_string(index) + ", workspace " + std::to_string(workspace) +
                               notes_of(engines.front()));
  }

  std::optional<float> run(const DnnDescriptor& plan, const ConvolutionDescription& description) {
    const std::vector<int64_t> ids = {description.a(), description.b(), description.result()};
    const std::vector<void*> addresses = {memory_[0], memory_[1], memory_[2]};
    DnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const int64_t>(ids))
        .set_addresses(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, addresses)
        .set_addresses(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, std::span<void* const>(&memory_[3], 1));
    pack.finalize();
    float ms = 0;
    const bool good =
        cudaEventRecord(begin_, nullptr) == cudaSuccess &&
        cudnnBackendExecute(handle_, plan.get(), pack.get()) == CUDNN_STATUS_SUCCESS &&
        cudaEventRecord(end_, nullptr) == cudaSuccess &&
        cudaEventSynchronize(end_) == cudaSuccess &&
        cudaEventElapsedTime(&ms, begin_, end_) == cudaSuccess;
    require(cudaDeviceSynchronize() == cudaSuccess, "an engine broke the GPU's context");
    return good ? std::optional(ms) : std::nullopt;
  }

  cudnnHandle_t handle_ = nullptr;
  void* memory_[4] = {};  ///< of a, b, the result and the workspace
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

}  // namespace
}  // namespace fluid::cuda

int main(int argc, char** argv) {
  const std::string_view dtype = argc > 1 ? argv[1] : "f32";
  if (dtype != "f32" && dtype != "tf32" && dtype != "bf16" && dtype != "f16") {
    std::fprintf(stderr, "usage: fluid_convolution_engines [f32|tf32|bf16|f16]\n");
    return 1;
  }
  fluid::cuda::Timing timing;
  for (const auto& layer : fluid::testing::kExampleConvolutions) {
    for (const auto direction :
         {fluid_gpu_forward, fluid_gpu_data_gradient, fluid_gpu_filter_gradient}) {
      const auto number = dtype == "bf16"  ? fluid_gpu_bf16
                          : dtype == "f16" ? fluid_gpu_f16
                                           : fluid_gpu_f32;
      FluidGpuConvolution convolution = fluid::testing::convolution_of(layer, direction, number);
      convolution.tf32 = dtype == "tf32";
      timing.print(layer, convolution);
    }
  }
  return 0;
}
