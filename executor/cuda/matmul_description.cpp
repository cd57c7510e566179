#include "executor/cuda/matmul_description.h"

namespace fluid::cuda {
namespace {

cudaDataType_t type_of(FluidGpuDtype dtype) {
  switch (dtype) {
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

cudaDataType_t scale_of(const FluidGpuMatmul& p) {
  return p.operands == fluid_gpu_f64 ? CUDA_R_64F : CUDA_R_32F;
}

cublasComputeType_t computation_of(const FluidGpuMatmul& p) {
  if (p.operands == fluid_gpu_f64) return CUBLAS_COMPUTE_64F;
  const bool rounds = p.operands == fluid_gpu_f32 && p.tf32 != 0;
  return rounds ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

cublasLtEpilogue_t epilogue_of(const FluidGpuMatmul& p) {
  if (p.bias != 0) return p.relu != 0 ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
  return p.relu != 0 ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT;
}

}  // namespace

MatmulDescription::MatmulDescription(const FluidGpuMatmul& p) {
  const ColumnMajorMatmul matrices = column_major(p);
  calls_.run([&] { return cublasLtMatmulDescInit(&operation_, computation_of(p), scale_of(p)); });
  set(CUBLASLT_MATMUL_DESC_TRANSA, matrices.transpose_first ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, matrices.transpose_second ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(p));
  if (p.bias != 0) {
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<int32_t>(type_of(p.result)));
    // A placeholder address, from which cuBLASLt derives the alignment of the bias.
    set_bias(reinterpret_cast<const void*>(FLUID_GPU_TENSOR_ALIGNMENT));
  }
  init_layout(first_, p.operands, matrices.first, p.count);
  init_layout(second_, p.operands, matrices.second, p.count);
  init_layout(result_, p.result, matrices.result, p.count);
}

void MatmulDescription::init_layout(cublasLtMatrixLayoutOpaque_t& layout, FluidGpuDtype dtype,
                                    const ColumnMajorLayout& m, int64_t count) {
  const auto set_layout = [&](cublasLtMatrixLayoutAttribute_t attribute, const auto& value) {
    calls_.run(
        [&] { return cublasLtMatrixLayoutSetAttribute(&layout, attribute, &value, sizeof value); });
  };
  calls_.run([&] {
    return cublasLtMatrixLayoutInit(&layout, type_of(dtype), static_cast<uint64_t>(m.rows),
                                    static_cast<uint64_t>(m.columns), m.leading_dimension);
  });
  if (count == 1) return;
  set_layout(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(count));
  set_layout(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, m.batch_stride);
}

MatmulPreference::MatmulPreference(int64_t workspace) {
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    calls_.run([&] {
      return cublasLtMatmulPreferenceSetAttribute(&preference_, attribute, &value, sizeof value);
    });
  };
  calls_.run([&] { return cublasLtMatmulPreferenceInit(&preference_); });
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(workspace));
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  for (const auto which :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set(which, uint32_t{FLUID_GPU_TENSOR_ALIGNMENT});
  }
}

}  // namespace fluid::cuda
