#include "executor/cuda/convolution_engines.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace fluid::cuda {
namespace {

constexpr int64_t kMaxEngines = 128;  ///< maximum number of engines inspected per heuristics mode
/// Maximum number of knobs that FluidGpuAlgorithm::opaque can store.
constexpr int64_t kMaxKnobs = 14;
constexpr int64_t kMaxKnobValue = INT16_MAX;

/// A cuDNN engine and its knob settings, as stored in FluidGpuAlgorithm::opaque.
struct Engine {
  struct Knob {
    int16_t type, value;
  };
  int32_t global_index = 0;  ///< value of CUDNN_ATTR_ENGINE_GLOBAL_INDEX
  int32_t knob_count = 0;
  std::array<Knob, kMaxKnobs> knobs = {};
};
static_assert(sizeof(Engine) == sizeof(FluidGpuAlgorithm::opaque));

/// The cuDNN numerical notes that exclude an engine.
std::vector<cudnnBackendNumericalNote_t> disallowed_notes(const FluidGpuConvolution& convolution) {
  std::vector<cudnnBackendNumericalNote_t> notes = {
      CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS,
      CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION};
  const bool exact = convolution.dtype == fluid_gpu_f32 && convolution.tf32 == 0;
  // Tensor cores compute f32 only as TF32. An engine that seems to be Winograd with 13 x 13 tiles
  // was off by 1.5e-4 of the largest result.
  if (exact) {
    notes.push_back(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
    notes.push_back(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13);
  }
  return notes;
}

/// Whether an engine has no disallowed numerical note and needs no run-time compilation.
bool is_allowed(const DnnDescriptor& engine, const FluidGpuConvolution& convolution) {
  const auto numerical = engine.values<cudnnBackendNumericalNote_t>(
      CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  const auto behaviour = engine.values<cudnnBackendBehaviorNote_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                                                   CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
  if (!numerical || !behaviour) return false;
  return std::ranges::find_first_of(*numerical, disallowed_notes(convolution)) ==
             numerical->end() &&
         std::ranges::find(*behaviour, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) == behaviour->end();
}

/// The engine and knob settings of an engine configuration; nullopt if FluidGpuAlgorithm cannot
/// store them.
std::optional<Engine> engine_of(const DnnDescriptor& configuration, const DnnDescriptor& engine) {
  const auto knobs =
      configuration.descriptors(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS);
  const auto index = engine.value_or<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, -1);
  if (index < 0 || std::ssize(knobs) > kMaxKnobs) return std::nullopt;
  Engine found{.global_index = static_cast<int32_t>(index),
               .knob_count = static_cast<int32_t>(knobs.size())};
  for (size_t i = 0; i < knobs.size(); ++i) {
    const auto type = knobs[i].value_or(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_KNOB_TYPE_COUNTS);
    const auto value =
        knobs[i].value_or<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, kMaxKnobValue + 1);
    if (type == CUDNN_KNOB_TYPE_COUNTS || std::abs(value) > kMaxKnobValue) return std::nullopt;
    found.knobs[i] = {static_cast<int16_t>(type), static_cast<int16_t>(value)};
  }
  return found;
}

FluidGpuAlgorithm to_algorithm(const Engine& engine) {
  FluidGpuAlgorithm algorithm = {};
  std::memcpy(algorithm.opaque, &engine, sizeof engine);
  return algorithm;
}

bool is_among(const std::vector<FluidGpuAlgorithm>& algorithms,
              const FluidGpuAlgorithm& algorithm) {
  return std::ranges::any_of(algorithms, [&](const FluidGpuAlgorithm& other) {
    return std::ranges::equal(other.opaque, algorithm.opaque);
  });
}

ConvolutionPlan build_plan(const DnnDevice& device, const DnnDescriptor& configuration) {
  ConvolutionPlan made{.components = {},
                       .plan = DnnDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)};
  made.plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  if (device.handle() != nullptr) {
    made.plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, device.handle());
  }
  device.set_device_properties(made.plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
  made.plan.finalize();
  made.workspace = made.plan.value_or<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 0);
  return made;
}

/// Converts an engine configuration to an algorithm. Returns nullopt if the engine is excluded,
/// rejects the convolution or needs more than `workspace` bytes. Stores any other cuDNN error in
/// `failure`.
std::optional<FluidGpuAlgorithm> usable_algorithm(const DnnDescriptor& configuration,
                                                  const FluidGpuConvolution& convolution,
                                                  const DnnDevice& device, int64_t workspace,
                                                  cudnnStatus_t& failure) {
  const auto engines =
      configuration.descriptors(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
  if (engines.empty() || !is_allowed(engines.front(), convolution)) return std::nullopt;
  const auto engine = engine_of(configuration, engines.front());
  if (!engine) return std::nullopt;
  const ConvolutionPlan plan = build_plan(device, configuration);
  if (!plan.plan.ok() && !is_rejection(plan.plan.status())) failure = plan.plan.status();
  if (!plan.plan.ok() || plan.workspace > workspace) return std::nullopt;
  FluidGpuAlgorithm algorithm = to_algorithm(*engine);
  algorithm.workspace = plan.workspace;
  return algorithm;
}

}  // namespace

DnnDevice::DnnDevice(const std::string& properties)
    : properties_(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR) {
  properties_->set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                   std::span<const char>(properties.c_str(), properties.size() + 1));
  properties_->finalize();
}

DnnDescriptor heuristics_of(const ConvolutionDescription& description, const DnnDevice& device,
                            cudnnBackendHeurMode_t mode) {
  DnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, description.graph())
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  device.set_device_properties(heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
  heuristics.finalize();
  return heuristics;
}

ConvolutionEngines convolution_engines(const FluidGpuConvolution& convolution,
                                       const DnnDevice& device, int64_t workspace, int max_count) {
  ConvolutionEngines found = {};
  cudnnStatus_t failure = CUDNN_STATUS_SUCCESS;
  const ConvolutionDescription description(convolution, device.handle());
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    const DnnDescriptor heuristics = heuristics_of(description, device, mode);
    const cudnnStatus_t status = heuristics.status();
    if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) continue;
    if (status != CUDNN_STATUS_SUCCESS) failure = status;
    for (const DnnDescriptor& configuration : heuristics.descriptors(
             CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, kMaxEngines)) {
      if (std::ssize(found.algorithms) >= max_count) return found;
      const auto algorithm =
          usable_algorithm(configuration, convolution, device, workspace, failure);
      if (algorithm && !is_among(found.algorithms, *algorithm))
        found.algorithms.push_back(*algorithm);
    }
  }
  if (found.algorithms.empty()) found.status = failure;
  return found;
}

ConvolutionPlan create_convolution_plan(const ConvolutionDescription& description,
                                        const DnnDevice& device,
                                        const FluidGpuAlgorithm& algorithm) {
  Engine chosen;
  std::memcpy(&chosen, algorithm.opaque, sizeof chosen);
  DnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, description.graph())
      .set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, int64_t{chosen.global_index});
  device.set_device_properties(engine, CUDNN_ATTR_ENGINE_DEVICEPROP);
  engine.finalize();
  DnnDescriptor configuration(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  configuration.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  std::vector<DnnDescriptor> knobs;
  std::vector<cudnnBackendDescriptor_t> all;
  for (int i = 0; i < std::clamp<int>(chosen.knob_count, 0, kMaxKnobs); ++i) {
    const Engine::Knob& knob = chosen.knobs[static_cast<size_t>(i)];
    DnnDescriptor& made = knobs.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    made.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, static_cast<cudnnBackendKnobType_t>(knob.type))
        .set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, int64_t{knob.value});
    made.finalize();
    configuration.propagate_error(made);
    all.push_back(made.get());
  }
  if (!all.empty()) {
    configuration.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                      std::span<const cudnnBackendDescriptor_t>(all));
  }
  configuration.finalize();
  ConvolutionPlan made = build_plan(device, configuration);
  made.components = std::move(knobs);
  made.components.push_back(std::move(engine));
  made.components.push_back(std::move(configuration));
  return made;
}

}  // namespace fluid::cuda
