#include "executor/cuda/convolution_engines.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace fluid::cuda {
namespace {

constexpr int64_t kMostEngines = 128;  ///< inspected per heuristics mode
constexpr int64_t kMostKnobs = 14;     ///< that fit into a choice
constexpr int64_t kMostValue = INT16_MAX;

/// A cuDNN engine and its knob settings, as stored in a choice. The fields are the global index,
/// the number of knobs, and type and value of each knob.
struct Engine {
  struct Knob {
    int16_t type, value;
  };
  int32_t number = 0;
  int32_t knob_count = 0;
  std::array<Knob, kMostKnobs> knobs = {};
};
static_assert(sizeof(Engine) == sizeof(FluidGpuChoice::opaque));

/// Numerical notes that an engine must not have.
std::vector<cudnnBackendNumericalNote_t> unwanted(const FluidGpuConvolution& convolution) {
  std::vector<cudnnBackendNumericalNote_t> notes = {
      CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS,
      CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION};
  const bool exact = convolution.number == fluid_gpu_f32 && convolution.tf32 == 0;
  // Tensor cores compute f32 only as TF32.
  if (exact) notes.push_back(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  return notes;
}

/// Whether the engine may be used. Its notes must be known, and its code must exist without
/// run-time compilation.
bool is_wanted(const DnnDescriptor& engine, const FluidGpuConvolution& convolution) {
  const auto numerical = engine.all<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                                                 CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  const auto behaviour = engine.all<cudnnBackendBehaviorNote_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                                                CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
  if (!numerical || !behaviour) return false;
  return std::ranges::find_first_of(*numerical, unwanted(convolution)) == numerical->end() &&
         std::ranges::find(*behaviour, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) == behaviour->end();
}

/// The engine and knobs of `configuration`; nullopt if they do not fit into a choice.
std::optional<Engine> engine_of(const DnnDescriptor& configuration, const DnnDescriptor& engine) {
  const auto knobs =
      configuration.all(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
                        CUDNN_KNOB_TYPE_COUNTS);
  const auto number = engine.one<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, -1);
  if (number < 0 || std::ssize(knobs) > kMostKnobs) return std::nullopt;
  Engine found{.number = static_cast<int32_t>(number),
               .knob_count = static_cast<int32_t>(knobs.size())};
  for (size_t i = 0; i < knobs.size(); ++i) {
    const auto type = knobs[i].one(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_KNOB_TYPE_COUNTS);
    const auto value = knobs[i].one<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, kMostValue + 1);
    if (type == CUDNN_KNOB_TYPE_COUNTS || std::abs(value) > kMostValue) return std::nullopt;
    found.knobs[i] = {static_cast<int16_t>(type), static_cast<int16_t>(value)};
  }
  return found;
}

FluidGpuChoice choice_of(const Engine& engine) {
  FluidGpuChoice choice = {};
  std::memcpy(choice.opaque, &engine, sizeof engine);
  return choice;
}

bool is_among(const std::vector<FluidGpuChoice>& choices, const FluidGpuChoice& choice) {
  return std::ranges::any_of(choices, [&](const FluidGpuChoice& other) {
    return std::ranges::equal(other.opaque, choice.opaque);
  });
}

ConvolutionPlan prepared(const DnnMachine& machine, const DnnDescriptor& configuration) {
  ConvolutionPlan made{.parts = {}, .plan = DnnDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)};
  made.plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  if (machine.handle() != nullptr) {
    made.plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, machine.handle());
  }
  machine.tell(made.plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
  made.plan.finish();
  made.workspace = made.plan.one<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 0);
  return made;
}

/// cuDNN's engine configurations for `description`, best first.
DnnDescriptor heuristics_of(const ConvolutionDescription& description, const DnnMachine& machine,
                            cudnnBackendHeurMode_t mode) {
  DnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, description.graph())
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  machine.tell(heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
  heuristics.finish();
  return heuristics;
}

/// The configuration as a choice, if it may be used. An error other than a rejection is stored in
/// `failure`.
std::optional<FluidGpuChoice> usable(const DnnDescriptor& configuration,
                                     const FluidGpuConvolution& convolution,
                                     const DnnMachine& machine, int64_t workspace,
                                     cudnnStatus_t& failure) {
  const auto engines =
      configuration.all(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
  if (engines.empty() || !is_wanted(engines.front(), convolution)) return std::nullopt;
  const auto engine = engine_of(configuration, engines.front());
  if (!engine) return std::nullopt;
  const ConvolutionPlan plan = prepared(machine, configuration);
  if (!plan.plan.good() && !is_rejection(plan.plan.status())) failure = plan.plan.status();
  if (!plan.plan.good() || plan.workspace > workspace) return std::nullopt;
  FluidGpuChoice choice = choice_of(*engine);
  choice.workspace = plan.workspace;
  return choice;
}

}  // namespace

DnnMachine::DnnMachine(const std::string& properties)
    : properties_(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR) {
  properties_->set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                   std::span<const char>(properties.c_str(), properties.size() + 1));
  properties_->finish();
}

ConvolutionEngines convolution_engines(const FluidGpuConvolution& convolution,
                                       const DnnMachine& machine, int64_t workspace, int room) {
  ConvolutionEngines found = {};
  cudnnStatus_t failure = CUDNN_STATUS_SUCCESS;
  const ConvolutionDescription description(convolution, machine.handle());
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    const DnnDescriptor heuristics = heuristics_of(description, machine, mode);
    const cudnnStatus_t status = heuristics.status();
    if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) continue;
    if (status != CUDNN_STATUS_SUCCESS) failure = status;
    for (const DnnDescriptor& configuration : heuristics.all(
             CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, kMostEngines)) {
      if (std::ssize(found.choices) >= room) return found;
      const auto choice = usable(configuration, convolution, machine, workspace, failure);
      if (choice && !is_among(found.choices, *choice)) found.choices.push_back(*choice);
    }
  }
  if (found.choices.empty()) found.status = failure;
  return found;
}

ConvolutionPlan plan_of(const ConvolutionDescription& description, const DnnMachine& machine,
                        const FluidGpuChoice& choice) {
  Engine chosen;
  std::memcpy(&chosen, choice.opaque, sizeof chosen);
  DnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, description.graph())
      .set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, int64_t{chosen.number});
  machine.tell(engine, CUDNN_ATTR_ENGINE_DEVICEPROP);
  engine.finish();
  DnnDescriptor configuration(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  configuration.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  std::vector<DnnDescriptor> knobs;
  std::vector<cudnnBackendDescriptor_t> all;
  for (int i = 0; i < std::clamp<int>(chosen.knob_count, 0, kMostKnobs); ++i) {
    const Engine::Knob& knob = chosen.knobs[static_cast<size_t>(i)];
    DnnDescriptor& made = knobs.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    made.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, static_cast<cudnnBackendKnobType_t>(knob.type))
        .set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, int64_t{knob.value});
    made.finish();
    configuration.require(made);
    all.push_back(made.get());
  }
  if (!all.empty()) {
    configuration.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                      std::span<const cudnnBackendDescriptor_t>(all));
  }
  configuration.finish();
  ConvolutionPlan made = prepared(machine, configuration);
  made.parts = std::move(knobs);
  made.parts.push_back(std::move(engine));
  made.parts.push_back(std::move(configuration));
  return made;
}

}  // namespace fluid::cuda
