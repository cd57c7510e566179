#include <cstring>
#include <span>
#include <vector>

#include "executor/cuda/column_major.h"
#include "executor/cuda/functions.h"
#include "executor/cuda/gpu_plan.h"
#include "executor/cuda/product_description.h"

namespace fluid::cuda {
namespace {

FluidGpuResult result_of(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return fluid_gpu_ok;
    case CUBLAS_STATUS_ALLOC_FAILED:
      return fluid_gpu_out_of_memory;
    case CUBLAS_STATUS_INVALID_VALUE:
    case CUBLAS_STATUS_NOT_SUPPORTED:
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return fluid_gpu_misused;
    default:
      return fluid_gpu_failed;
  }
}

FluidGpuResult answer_of(FluidGpu* gpu, const char* doing, cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return fluid_gpu_ok;
  const std::string why = cublasLtGetStatusString(status);
  if (result_of(status) == fluid_gpu_misused) return misused(gpu, doing, why);
  return set_error(result_of(status), std::string(doing) + ": " + why);
}

cudaError_t destroy_blas(void* handle) {
  const cublasStatus_t status = cublasLtDestroy(static_cast<cublasLtHandle_t>(handle));
  return status == CUBLAS_STATUS_SUCCESS ? cudaSuccess : cudaErrorUnknown;
}

/// Creates the GPU's only cuBLASLt handle, `gpu->blas`, if needed.
cublasStatus_t require_blas(FluidGpu* gpu) {
  const std::lock_guard lock(gpu->blas_mutex);
  if (gpu->blas != nullptr) return CUBLAS_STATUS_SUCCESS;
  const cublasStatus_t status = cublasLtCreate(&gpu->blas);
  if (status == CUBLAS_STATUS_SUCCESS) gpu->gpu_resources.add(gpu->blas, destroy_blas);
  return status;
}

/// Validates a matmul before planning.
FluidGpuResult prepare(FluidGpu* gpu, const char* doing, const FluidGpuMatmul& product) {
  const FluidGpuResult begun = begin_preparing(gpu, doing, fault_of(product));
  return begun == fluid_gpu_ok ? answer_of(gpu, doing, require_blas(gpu)) : begun;
}

struct Product : FluidGpuPlan {
  Product(FluidGpu* gpu, const FluidGpuMatmul& of)
      : FluidGpuPlan(gpu, of.adds != 0, of.bias != 0), product(of), description(of) {}

  const char* doing() const override { return "multiplying matrices"; }
  FluidGpuResult queue(FluidGpuStream* stream, const FluidGpuOperands& factors) override;

  FluidGpuMatmul product;
  ProductDescription description;
  cublasLtMatmulAlgo_t algorithm = {};
};

FluidGpuResult Product::queue(FluidGpuStream* stream, const FluidGpuOperands& f) {
  if (bias) description.set_bias(f.bias);
  const double one = 1, addends = adds ? 1 : 0;
  const auto one_f32 = static_cast<float>(one), addends_f32 = static_cast<float>(addends);
  const bool wide = product.operands == fluid_gpu_f64;
  const void* alpha = wide ? static_cast<const void*>(&one) : &one_f32;
  const void* beta = wide ? static_cast<const void*>(&addends) : &addends_f32;
  const void* addend = adds ? f.addend : f.result;
  return answer_of(gpu, doing(),
                   description.with([&](auto operation, auto first, auto second, auto c, auto d) {
                     return cublasLtMatmul(gpu->blas, operation, alpha, f.b, first, f.a, second,
                                           beta, addend, c, f.result, d, &algorithm, f.workspace,
                                           static_cast<size_t>(workspace), stream->handle);
                   }));
}

}  // namespace

FluidGpuResult matmul_choices(FluidGpu* gpu, const FluidGpuMatmul* product, int64_t workspace,
                              FluidGpuChoice* choices, int32_t* count) {
  const char* doing = "choosing a matmul algorithm";
  const int room = *count;
  *count = 0;
  if (const FluidGpuResult ready = prepare(gpu, doing, *product); ready != fluid_gpu_ok) {
    return ready;
  }
  ProductPreference preference(workspace);
  cublasStatus_t status = preference.status();
  std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<size_t>(room));
  int number = 0;
  ProductDescription description(*product);
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = description.with([&](auto operation, auto first, auto second, auto c, auto d) {
      return cublasLtMatmulAlgoGetHeuristic(gpu->blas, operation, first, second, c, d,
                                            preference.get(), room, found.data(), &number);
    });
  }
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return fluid_gpu_ok;  // no algorithm
  if (status != CUBLAS_STATUS_SUCCESS) return answer_of(gpu, doing, status);
  for (const auto& result : std::span(found).first(static_cast<size_t>(number))) {
    if (result.state != CUBLAS_STATUS_SUCCESS) continue;
    FluidGpuChoice& choice = choices[(*count)++];
    static_assert(sizeof choice.opaque == sizeof result.algo);
    std::memcpy(choice.opaque, &result.algo, sizeof result.algo);
    choice.workspace = static_cast<int64_t>(result.workspaceSize);
  }
  return fluid_gpu_ok;
}

FluidGpuResult matmul_plan_create(FluidGpu* gpu, const FluidGpuMatmul* product,
                                  const FluidGpuChoice* choice, FluidGpuPlan** gpu_plan) {
  const char* doing = "preparing a matmul";
  if (const FluidGpuResult ready = prepare(gpu, doing, *product); ready != fluid_gpu_ok) {
    return ready;
  }
  auto made = std::make_unique<Product>(gpu, *product);
  std::memcpy(&made->algorithm, choice->opaque, sizeof made->algorithm);
  made->workspace = choice->workspace;
  cublasLtMatmulHeuristicResult_t checked = {};
  const cublasStatus_t status =
      made->description.with([&](auto operation, auto first, auto second, auto c, auto d) {
        return cublasLtMatmulAlgoCheck(gpu->blas, operation, first, second, c, d, &made->algorithm,
                                       &checked);
      });
  if (status != CUBLAS_STATUS_SUCCESS) return answer_of(gpu, doing, status);
  if (checked.workspaceSize > static_cast<size_t>(made->workspace)) {
    return misused(gpu, doing, "the algorithm needs more workspace than it declares");
  }
  register_plan(std::move(made), gpu_plan);
  return fluid_gpu_ok;
}

}  // namespace fluid::cuda
