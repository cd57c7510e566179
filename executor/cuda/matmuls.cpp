#include <cstring>
#include <span>
#include <vector>

#include "executor/cuda/column_major.h"
#include "executor/cuda/functions.h"
#include "executor/cuda/gpu_plan.h"
#include "executor/cuda/matmul_description.h"

namespace fluid::cuda {
namespace {

FluidGpuResult result_code(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return fluid_gpu_ok;
    case CUBLAS_STATUS_ALLOC_FAILED:
      return fluid_gpu_out_of_memory;
    case CUBLAS_STATUS_INVALID_VALUE:
    case CUBLAS_STATUS_NOT_SUPPORTED:
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return fluid_gpu_invalid_usage;
    default:
      return fluid_gpu_failed;
  }
}

FluidGpuResult blas_result(FluidGpu* gpu, const char* action, cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return fluid_gpu_ok;
  const std::string why = cublasLtGetStatusString(status);
  if (result_code(status) == fluid_gpu_invalid_usage) return invalid_usage(gpu, action, why);
  return set_error(result_code(status), std::string(action) + ": " + why);
}

cudaError_t destroy_blas(void* handle) {
  const cublasStatus_t status = cublasLtDestroy(static_cast<cublasLtHandle_t>(handle));
  return status == CUBLAS_STATUS_SUCCESS ? cudaSuccess : cudaErrorUnknown;
}

/// Creates the GPU's cuBLASLt handle `gpu->blas` unless the handle exists.
cublasStatus_t ensure_cublas_handle(FluidGpu* gpu) {
  const std::lock_guard lock(gpu->blas_mutex);
  if (gpu->blas != nullptr) return CUBLAS_STATUS_SUCCESS;
  const cublasStatus_t status = cublasLtCreate(&gpu->blas);
  if (status == CUBLAS_STATUS_SUCCESS) gpu->gpu_resources.add(gpu->blas, destroy_blas);
  return status;
}

/// Validates a matmul, and ensures that the cuBLASLt handle exists.
FluidGpuResult validate(FluidGpu* gpu, const char* action, const FluidGpuMatmul& matmul) {
  const FluidGpuResult checked = check_before_planning(gpu, action, validation_error(matmul));
  return checked == fluid_gpu_ok ? blas_result(gpu, action, ensure_cublas_handle(gpu)) : checked;
}

struct MatmulPlan : FluidGpuPlan {
  MatmulPlan(FluidGpu* gpu, const FluidGpuMatmul& plan_matmul)
      : FluidGpuPlan(gpu, plan_matmul.has_addend != 0, plan_matmul.bias != 0),
        matmul(plan_matmul),
        description(plan_matmul) {}

  const char* action() const override { return "multiplying matrices"; }
  FluidGpuResult enqueue(FluidGpuStream* stream, const FluidGpuOperands& operands) override;

  FluidGpuMatmul matmul;
  MatmulDescription description;
  cublasLtMatmulAlgo_t algorithm = {};
};

FluidGpuResult MatmulPlan::enqueue(FluidGpuStream* stream, const FluidGpuOperands& f) {
  if (has_bias) description.set_bias(f.bias);
  const double one = 1, addend_scale = has_addend ? 1 : 0;
  const auto one_f32 = static_cast<float>(one), addend_scale_f32 = static_cast<float>(addend_scale);
  const bool wide = matmul.operands == fluid_gpu_f64;
  const void* alpha = wide ? static_cast<const void*>(&one) : &one_f32;
  const void* beta = wide ? static_cast<const void*>(&addend_scale) : &addend_scale_f32;
  const void* addend = has_addend ? f.addend : f.result;
  return blas_result(
      gpu, action(),
      description.call_with([&](auto operation, auto first, auto second, auto c, auto d) {
        return cublasLtMatmul(gpu->blas, operation, alpha, f.b, first, f.a, second, beta, addend, c,
                              f.result, d, &algorithm, f.workspace, static_cast<size_t>(workspace),
                              stream->handle);
      }));
}

}  // namespace

FluidGpuResult matmul_algorithms(FluidGpu* gpu, const FluidGpuMatmul* matmul, int64_t workspace,
                                 FluidGpuAlgorithm* algorithms, int32_t* count) {
  const char* action = "choosing a matmul algorithm";
  const int max_count = *count;
  *count = 0;
  if (const FluidGpuResult ready = validate(gpu, action, *matmul); ready != fluid_gpu_ok) {
    return ready;
  }
  MatmulPreference preference(workspace);
  cublasStatus_t status = preference.status();
  std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<size_t>(max_count));
  int found_count = 0;
  MatmulDescription description(*matmul);
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = description.call_with([&](auto operation, auto first, auto second, auto c, auto d) {
      return cublasLtMatmulAlgoGetHeuristic(gpu->blas, operation, first, second, c, d,
                                            preference.get(), max_count, found.data(),
                                            &found_count);
    });
  }
  // cuBLASLt has no algorithm for this matmul: return an empty list.
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return fluid_gpu_ok;
  if (status != CUBLAS_STATUS_SUCCESS) return blas_result(gpu, action, status);
  for (const auto& result : std::span(found).first(static_cast<size_t>(found_count))) {
    if (result.state != CUBLAS_STATUS_SUCCESS) continue;
    FluidGpuAlgorithm& algorithm = algorithms[(*count)++];
    static_assert(sizeof algorithm.opaque == sizeof result.algo);
    std::memcpy(algorithm.opaque, &result.algo, sizeof result.algo);
    algorithm.workspace = static_cast<int64_t>(result.workspaceSize);
  }
  return fluid_gpu_ok;
}

FluidGpuResult matmul_plan_create(FluidGpu* gpu, const FluidGpuMatmul* matmul,
                                  const FluidGpuAlgorithm* algorithm, FluidGpuPlan** gpu_plan) {
  const char* action = "preparing a matmul";
  if (const FluidGpuResult ready = validate(gpu, action, *matmul); ready != fluid_gpu_ok) {
    return ready;
  }
  auto made = std::make_unique<MatmulPlan>(gpu, *matmul);
  std::memcpy(&made->algorithm, algorithm->opaque, sizeof made->algorithm);
  made->workspace = algorithm->workspace;
  cublasLtMatmulHeuristicResult_t checked = {};
  const cublasStatus_t status =
      made->description.call_with([&](auto operation, auto first, auto second, auto c, auto d) {
        return cublasLtMatmulAlgoCheck(gpu->blas, operation, first, second, c, d, &made->algorithm,
                                       &checked);
      });
  if (status != CUBLAS_STATUS_SUCCESS) return blas_result(gpu, action, status);
  if (checked.workspaceSize > static_cast<size_t>(made->workspace)) {
    return invalid_usage(gpu, action, "the algorithm needs more workspace than it declares");
  }
  register_plan(std::move(made), gpu_plan);
  return fluid_gpu_ok;
}

}  // namespace fluid::cuda
