#include "executor/cpu_libraries/amx_kernels.h"

#include <memory>

#include "executor/cpu_libraries/amx_filter.h"
#include "executor/cpu_libraries/amx_matmul.h"
#include "executor/cpu_libraries/amx_pixels.h"
#include "executor/cpu_libraries/amx_support.h"

namespace fluid {
namespace {

struct AmxKernelEntry {
  std::string_view kernel;
  ConvDirection direction;
};

constexpr AmxKernelEntry kAmxKernels[] = {
    {"amx.conv2d", ConvDirection::forward},
    {"amx.conv2d_grad_input", ConvDirection::input_gradient},
    {"amx.conv2d_grad_filter", ConvDirection::filter_gradient}};

std::optional<DirectProblem> amx_problem(const AmxKernelEntry& entry, const ir::Op& op,
                                         const EpilogueOps& epilogue, int64_t batch) {
  const auto task = convolution_task(entry.direction, op, epilogue, batch);
  if (!task || task->dtype != DType::bf16 || task->groups != 1 || !cpu_supports_amx())
    return std::nullopt;
  return direct_problem(*task);
}

constexpr std::string_view kMatmul = "amx.matmul";

template <class Plan, class Problem>
KernelCandidate candidate_of(std::string_view kernel, const ir::Op& op, Problem problem,
                             double flops_per_second, double bytes_per_second) {
  const Plan plan(std::move(problem));
  KernelCandidate candidate = {
      .kernel = std::string(kernel),
      .seconds = plan.predicted_seconds(flops_per_second, bytes_per_second),
      .workspace = plan.workspace()};
  for (const Value& v : op.operands) candidate.operands.push_back(v.type().layout);
  candidate.results = {op.results[0].type.layout};
  return candidate;
}

}  // namespace

std::vector<KernelCandidate> amx_candidates(const ir::Op& op, const EpilogueOps& epilogue,
                                            double flops_per_second, double bytes_per_second) {
  std::vector<KernelCandidate> candidates;
  const auto add = [&]<class Plan>(std::string_view kernel, auto problem) {
    candidates.push_back(
        candidate_of<Plan>(kernel, op, std::move(problem), flops_per_second, bytes_per_second));
  };
  for (const AmxKernelEntry* entry : cpu_kernels_for(kAmxKernels, op)) {
    auto problem = amx_problem(*entry, op, epilogue, 1);
    if (!problem) continue;
    if (problem->is_filter_gradient()) {
      add.operator()<AmxFilterPlan>(entry->kernel, *std::move(problem));
    } else {
      add.operator()<AmxPixelsPlan>(entry->kernel, *std::move(problem));
    }
  }
  if (cpu_supports_amx() && lists_kernel(op, KernelDevice::cpu, kMatmul)) {
    if (const auto problem = amx_matmul_problem(op, epilogue, 1))
      add.operator()<AmxMatmulPlan>(kMatmul, *problem);
  }
  return candidates;
}

std::optional<LibraryRoutine> amx_kernel(std::string_view kernel, const ir::Op& op,
                                         const EpilogueOps& epilogue, int64_t batch) {
  const AmxKernelEntry* entry = find_kernel(kAmxKernels, kernel);
  if (entry == nullptr && kernel != kMatmul) return std::nullopt;
  if (kernel == kMatmul) {
    const auto problem = amx_matmul_problem(op, epilogue, batch);
    if (problem && cpu_supports_amx())
      return AmxMatmulPlan::routine(std::make_shared<AmxMatmulPlan>(*problem));
  } else if (auto problem = amx_problem(*entry, op, epilogue, batch)) {
    if (problem->is_filter_gradient())
      return AmxFilterPlan::routine(std::make_shared<AmxFilterPlan>(*std::move(problem)));
    return AmxPixelsPlan::routine(std::make_shared<AmxPixelsPlan>(*std::move(problem)));
  }
  throw DeviceError("there is no kernel '" + std::string(kernel) + "' for " + op.name);
}

}  // namespace fluid
