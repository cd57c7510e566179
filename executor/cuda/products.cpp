#include <cstring>
#include <span>
#include <vector>

#include "executor/cuda/column_major.h"
#include "executor/cuda/functions.h"
#include "executor/cuda/objects.h"

namespace fluid::cuda {
namespace {

cudaDataType_t type_of(FluidGpuNumber number) {
  switch (number) {
    case fluid_gpu_f64:
      return CUDA_R_64F;
    case fluid_gpu_f16:
      return CUDA_R_16F;
    case fluid_gpu_bf16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_32F;
  }
}

cudaDataType_t scale_of(const FluidGpuProduct& p) {
  return p.operands == fluid_gpu_f64 ? CUDA_R_64F : CUDA_R_32F;
}

cublasComputeType_t computation_of(const FluidGpuProduct& p) {
  if (p.operands == fluid_gpu_f64) return CUBLAS_COMPUTE_64F;
  const bool rounds = p.operands == fluid_gpu_f32 && p.tf32 != 0;
  return rounds ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

cublasLtEpilogue_t epilogue_of(const FluidGpuProduct& p) {
  if (p.bias != 0) return p.relu != 0 ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
  return p.relu != 0 ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT;
}

/// Calls as long as they go well.
class Calls {
 public:
  template <class Call>
  void then(Call&& call) {
    if (status_ == CUBLAS_STATUS_SUCCESS) status_ = call();
  }
  cublasStatus_t status() const { return status_; }

 private:
  cublasStatus_t status_ = CUBLAS_STATUS_SUCCESS;
};

/// A product in cuBLASLt's terms. Nothing of it is to be given back.
class Description {
 public:
  explicit Description(const FluidGpuProduct& p) {
    const ColumnMajorProduct matrices = column_major(p);
    calls_.then(
        [&] { return cublasLtMatmulDescInit(&operation_, computation_of(p), scale_of(p)); });
    set(CUBLASLT_MATMUL_DESC_TRANSA, matrices.transpose_first ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, matrices.transpose_second ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(p));
    if (p.bias != 0) {
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<int32_t>(type_of(p.result)));
      set_bias(reinterpret_cast<const void*>(FLUID_GPU_PRODUCT_ALIGNMENT));  // how it is aligned
    }
    lay_out(first_, p.operands, matrices.first, p.count);
    lay_out(second_, p.operands, matrices.second, p.count);
    lay_out(result_, p.result, matrices.result, p.count);
  }

  cublasStatus_t status() const { return calls_.status(); }
  void set_bias(const void* address) { set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, address); }

  /// Calls `call` with the operation and the layouts of A, B, C and D.
  template <class Call>
  cublasStatus_t with(Call&& call) {
    if (status() != CUBLAS_STATUS_SUCCESS) return status();
    return call(&operation_, &first_, &second_, &result_, &result_);
  }

 private:
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    calls_.then([&] {
      return cublasLtMatmulDescSetAttribute(&operation_, attribute, &value, sizeof value);
    });
  }
  template <class T>
  void set(cublasLtMatrixLayoutOpaque_t& layout, cublasLtMatrixLayoutAttribute_t attribute,
           const T& value) {
    calls_.then(
        [&] { return cublasLtMatrixLayoutSetAttribute(&layout, attribute, &value, sizeof value); });
  }
  void lay_out(cublasLtMatrixLayoutOpaque_t& layout, FluidGpuNumber number, const ColumnMajor& m,
               int64_t count) {
    calls_.then([&] {
      return cublasLtMatrixLayoutInit(&layout, type_of(number), static_cast<uint64_t>(m.rows),
                                      static_cast<uint64_t>(m.columns), m.leading);
    });
    if (count == 1) return;
    set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(count));
    set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, m.step);
  }

  Calls calls_;
  cublasLtMatmulDescOpaque_t operation_ = {};
  cublasLtMatrixLayoutOpaque_t first_ = {}, second_ = {}, result_ = {};
};

/// Which algorithms will do: sums are kept in the type they are computed in, and added up in an
/// order that does not depend on who is done first.
cublasStatus_t prefer(cublasLtMatmulPreferenceOpaque_t& preference, int64_t workspace) {
  Calls calls;
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    calls.then([&] {
      return cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof value);
    });
  };
  calls.then([&] { return cublasLtMatmulPreferenceInit(&preference); });
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(workspace));
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  for (const auto which :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set(which, uint32_t{FLUID_GPU_PRODUCT_ALIGNMENT});
  }
  return calls.status();
}

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

/// A capture is lost by a call that is misused.
FluidGpuResult misused(FluidGpu* gpu, const char* doing, const std::string& why) {
  if (gpu->captured != nullptr) gpu->capture_lost = true;
  return refuse(fluid_gpu_misused, std::string(doing) + ": " + why);
}

FluidGpuResult answer_of(FluidGpu* gpu, const char* doing, cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return fluid_gpu_ok;
  const std::string why = cublasLtGetStatusString(status);
  if (result_of(status) == fluid_gpu_misused) return misused(gpu, doing, why);
  return refuse(result_of(status), std::string(doing) + ": " + why);
}

cudaError_t destroy_blas(void* handle) {
  const cublasStatus_t status = cublasLtDestroy(static_cast<cublasLtHandle_t>(handle));
  return status == CUBLAS_STATUS_SUCCESS ? cudaSuccess : cudaErrorUnknown;
}

/// The one handle of the GPU, in `gpu->blas`.
cublasStatus_t require_blas(FluidGpu* gpu) {
  const std::lock_guard lock(gpu->blas_mutex);
  if (gpu->blas != nullptr) return CUBLAS_STATUS_SUCCESS;
  const cublasStatus_t status = cublasLtCreate(&gpu->blas);
  if (status == CUBLAS_STATUS_SUCCESS) gpu->belongings.add(gpu->blas, destroy_blas);
  return status;
}

/// Begins to prepare a product, which no capture allows.
FluidGpuResult prepare(FluidGpu* gpu, const char* doing, const FluidGpuProduct& product) {
  const FluidGpuResult allowed = outside_captures(gpu, doing, [] { return cudaSuccess; });
  if (allowed != fluid_gpu_ok) return allowed;
  if (const std::string fault = fault_of(product); !fault.empty()) {
    return misused(gpu, doing, fault);
  }
  return answer_of(gpu, doing, require_blas(gpu));
}

}  // namespace
}  // namespace fluid::cuda

struct FluidGpuMultiplier {
  FluidGpu* gpu = nullptr;
  FluidGpuProduct product = {};
  fluid::cuda::Description description;
  cublasLtMatmulAlgo_t algorithm = {};
  size_t workspace = 0;
  bool loaded = false;  ///< the code
};

namespace fluid::cuda {
namespace {

cudaError_t destroy_multiplier(void* multiplier) {
  delete static_cast<FluidGpuMultiplier*>(multiplier);
  return cudaSuccess;
}

cublasStatus_t queue(FluidGpuStream* stream, FluidGpuMultiplier* m, const FluidGpuFactors& f) {
  if (m->product.bias != 0) m->description.set_bias(f.bias);
  const double one = 1, addends = m->product.adds != 0 ? 1 : 0;
  const auto one_f32 = static_cast<float>(one), addends_f32 = static_cast<float>(addends);
  const bool wide = m->product.operands == fluid_gpu_f64;
  const void* alpha = wide ? static_cast<const void*>(&one) : &one_f32;
  const void* beta = wide ? static_cast<const void*>(&addends) : &addends_f32;
  const void* addend = m->product.adds != 0 ? f.addend : f.result;
  return m->description.with([&](auto operation, auto first, auto second, auto c, auto d) {
    return cublasLtMatmul(m->gpu->blas, operation, alpha, f.b, first, f.a, second, beta, addend, c,
                          f.result, d, &m->algorithm, f.workspace, m->workspace, stream->handle);
  });
}

}  // namespace

FluidGpuResult matmul_choices(FluidGpu* gpu, const FluidGpuProduct* product, int64_t workspace,
                              FluidGpuChoice* choices, int32_t* count) {
  const char* doing = "choosing how to multiply matrices";
  const int room = *count;
  *count = 0;
  if (const FluidGpuResult ready = prepare(gpu, doing, *product); ready != fluid_gpu_ok) {
    return ready;
  }
  cublasLtMatmulPreferenceOpaque_t preference = {};
  cublasStatus_t status = prefer(preference, workspace);
  std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<size_t>(room));
  int number = 0;
  Description description(*product);
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = description.with([&](auto operation, auto first, auto second, auto c, auto d) {
      return cublasLtMatmulAlgoGetHeuristic(gpu->blas, operation, first, second, c, d, &preference,
                                            room, found.data(), &number);
    });
  }
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return fluid_gpu_ok;  // there is none
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

FluidGpuResult multiplier_create(FluidGpu* gpu, const FluidGpuProduct* product,
                                 const FluidGpuChoice* choice, FluidGpuMultiplier** multiplier) {
  const char* doing = "preparing a product of matrices";
  if (const FluidGpuResult ready = prepare(gpu, doing, *product); ready != fluid_gpu_ok) {
    return ready;
  }
  auto made = std::make_unique<FluidGpuMultiplier>(
      FluidGpuMultiplier{.gpu = gpu, .product = *product, .description = Description(*product)});
  std::memcpy(&made->algorithm, choice->opaque, sizeof made->algorithm);
  made->workspace = static_cast<size_t>(choice->workspace);
  cublasLtMatmulHeuristicResult_t checked = {};
  const cublasStatus_t status =
      made->description.with([&](auto operation, auto first, auto second, auto c, auto d) {
        return cublasLtMatmulAlgoCheck(gpu->blas, operation, first, second, c, d, &made->algorithm,
                                       &checked);
      });
  if (status != CUBLAS_STATUS_SUCCESS) return answer_of(gpu, doing, status);
  if (checked.workspaceSize > made->workspace) {
    return misused(gpu, doing, "the choice needs more workspace than it says");
  }
  *multiplier = made.release();
  gpu->belongings.add(*multiplier, destroy_multiplier);
  return fluid_gpu_ok;
}

FluidGpuResult multiplier_destroy(FluidGpuMultiplier* multiplier) {
  return give_back(multiplier, "destroying a product of matrices");
}

FluidGpuResult multiply(FluidGpuStream* stream, FluidGpuMultiplier* multiplier,
                        const FluidGpuFactors* factors) {
  const char* doing = "multiplying matrices";
  FluidGpu* gpu = stream->gpu;
  const FluidGpuResult current = on(gpu, doing, [] { return cudaSuccess; });
  if (current != fluid_gpu_ok) return current;
  const bool captured = gpu->captured != nullptr;
  if (captured && !multiplier->loaded) {
    return misused(gpu, doing, "for the first time during a capture");
  }
  const std::string fault = fault_of(multiplier->product, *factors, multiplier->workspace > 0);
  if (!fault.empty()) return misused(gpu, doing, fault);
  const FluidGpuResult queued = answer_of(gpu, doing, queue(stream, multiplier, *factors));
  multiplier->loaded |= queued == fluid_gpu_ok && !captured;
  return queued;
}

}  // namespace fluid::cuda
