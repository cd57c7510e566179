// Reads the description of a matrix product back from cuBLASLt. Needs no GPU.

#include "executor/cuda/matmul_description.h"

#include <gtest/gtest.h>

#include <array>

namespace fluid::cuda::matmul_description_test {
namespace {

constexpr FluidGpuMatmul kProduct = {.operands = fluid_gpu_f32,
                                     .result = fluid_gpu_f32,
                                     .transpose_a = 1,
                                     .m = 3,
                                     .n = 4,
                                     .k = 5,
                                     .a_row_stride = 3,
                                     .b_row_stride = 4,
                                     .result_row_stride = 4,
                                     .count = 1,
                                     .a_matrix_stride = 15,
                                     .b_matrix_stride = 20,
                                     .result_matrix_stride = 12};

/// An attribute of the operation.
template <class T>
T told(const FluidGpuMatmul& product, cublasLtMatmulDescAttributes_t attribute) {
  MatmulDescription description(product);
  T value = {};
  size_t written = 0;
  const cublasStatus_t status = description.call_with([&](auto operation, auto, auto, auto, auto) {
    return cublasLtMatmulDescGetAttribute(operation, attribute, &value, sizeof value, &written);
  });
  EXPECT_EQ(status, CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(written, sizeof value);
  return value;
}

/// An attribute of the layouts of A, B and D.
template <class T>
std::array<T, 3> laid_out(const FluidGpuMatmul& product,
                          cublasLtMatrixLayoutAttribute_t attribute) {
  MatmulDescription description(product);
  std::array<T, 3> values = {};
  const cublasStatus_t status = description.call_with([&](auto, auto a, auto b, auto, auto d) {
    size_t written = 0;
    cublasStatus_t worst = CUBLAS_STATUS_SUCCESS;
    const cublasLtMatrixLayout_t layouts[] = {a, b, d};
    for (size_t i = 0; i < 3; ++i) {
      const cublasStatus_t got =
          cublasLtMatrixLayoutGetAttribute(layouts[i], attribute, &values[i], sizeof(T), &written);
      if (got != CUBLAS_STATUS_SUCCESS) worst = got;
    }
    return worst;
  });
  EXPECT_EQ(status, CUBLAS_STATUS_SUCCESS);
  return values;
}

TEST(MatmulDescription, ComputesF32ExactlyUnlessItMayRound) {
  const auto computes = [](FluidGpuDtype number, bool tf32) {
    FluidGpuMatmul p = kProduct;
    p.operands = p.result = number;
    p.tf32 = tf32;
    return told<int32_t>(p, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE);
  };
  EXPECT_EQ(computes(fluid_gpu_f32, false), CUBLAS_COMPUTE_32F);
  EXPECT_EQ(computes(fluid_gpu_f32, true), CUBLAS_COMPUTE_32F_FAST_TF32);
  for (const bool tf32 : {false, true}) {
    EXPECT_EQ(computes(fluid_gpu_f16, tf32), CUBLAS_COMPUTE_32F);
    EXPECT_EQ(computes(fluid_gpu_bf16, tf32), CUBLAS_COMPUTE_32F);
    EXPECT_EQ(computes(fluid_gpu_f64, tf32), CUBLAS_COMPUTE_64F);
  }
}

TEST(MatmulDescription, ExchangesAAndB) {
  EXPECT_EQ(told<int32_t>(kProduct, CUBLASLT_MATMUL_DESC_TRANSA), CUBLAS_OP_N) << "b";
  EXPECT_EQ(told<int32_t>(kProduct, CUBLASLT_MATMUL_DESC_TRANSB), CUBLAS_OP_T) << "a";
  using Extents = std::array<uint64_t, 3>;
  EXPECT_EQ(laid_out<uint64_t>(kProduct, CUBLASLT_MATRIX_LAYOUT_ROWS), (Extents{4, 3, 4}));
  EXPECT_EQ(laid_out<uint64_t>(kProduct, CUBLASLT_MATRIX_LAYOUT_COLS), (Extents{5, 5, 3}));
  using Strides = std::array<int64_t, 3>;
  EXPECT_EQ(laid_out<int64_t>(kProduct, CUBLASLT_MATRIX_LAYOUT_LD), (Strides{4, 3, 4}));
  EXPECT_EQ(laid_out<int32_t>(kProduct, CUBLASLT_MATRIX_LAYOUT_ORDER),
            (std::array<int32_t, 3>{CUBLASLT_ORDER_COL, CUBLASLT_ORDER_COL, CUBLASLT_ORDER_COL}));
}

TEST(MatmulDescription, CountsMatrices) {
  FluidGpuMatmul p = kProduct;
  p.count = 7;
  EXPECT_EQ(laid_out<int32_t>(p, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT),
            (std::array<int32_t, 3>{7, 7, 7}));
  EXPECT_EQ(laid_out<int64_t>(p, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET),
            (std::array<int64_t, 3>{20, 15, 12}));
  EXPECT_EQ(laid_out<int32_t>(kProduct, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT),
            (std::array<int32_t, 3>{1, 1, 1}));
}

TEST(MatmulDescription, SaysTheTypes) {
  FluidGpuMatmul p = kProduct;
  p.operands = fluid_gpu_bf16;
  using Types = std::array<uint32_t, 3>;
  EXPECT_EQ(laid_out<uint32_t>(p, CUBLASLT_MATRIX_LAYOUT_TYPE),
            (Types{CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F}));
  p.bias = 1;
  EXPECT_EQ(told<int32_t>(p, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE), CUDA_R_32F);
  EXPECT_EQ(told<int32_t>(p, CUBLASLT_MATMUL_DESC_SCALE_TYPE), CUDA_R_32F);
  p.operands = p.result = fluid_gpu_f16;
  EXPECT_EQ(told<int32_t>(p, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE), CUDA_R_16F);
  p.operands = p.result = fluid_gpu_f64;
  p.bias = 0;
  EXPECT_EQ(told<int32_t>(p, CUBLASLT_MATMUL_DESC_SCALE_TYPE), CUDA_R_64F);
}

TEST(MatmulDescription, SaysTheEpilogue) {
  const auto epilogue = [](bool bias, bool relu) {
    FluidGpuMatmul p = kProduct;
    p.bias = bias;
    p.relu = relu;
    return told<uint32_t>(p, CUBLASLT_MATMUL_DESC_EPILOGUE);
  };
  EXPECT_EQ(epilogue(false, false), CUBLASLT_EPILOGUE_DEFAULT);
  EXPECT_EQ(epilogue(true, false), CUBLASLT_EPILOGUE_BIAS);
  EXPECT_EQ(epilogue(false, true), CUBLASLT_EPILOGUE_RELU);
  EXPECT_EQ(epilogue(true, true), CUBLASLT_EPILOGUE_RELU_BIAS);
}

TEST(MatmulDescription, TakesTheAddressOfABias) {
  FluidGpuMatmul p = kProduct;
  p.bias = 1;
  MatmulDescription description(p);
  const float bias = 0;
  description.set_bias(&bias);
  const void* found = nullptr;
  size_t written = 0;
  EXPECT_EQ(description.call_with([&](auto operation, auto, auto, auto, auto) {
    return cublasLtMatmulDescGetAttribute(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &found,
                                          sizeof found, &written);
  }),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(found, &bias);
}

TEST(MatmulPreference, AllowsWhatIsReproducibleAndFits) {
  MatmulPreference preference(12345);
  ASSERT_EQ(preference.status(), CUBLAS_STATUS_SUCCESS);
  size_t written = 0;
  uint64_t workspace = 0;
  uint32_t schemes = 0, alignment = 0;
  cublasLtMatmulPreferenceGetAttribute(preference.get(), CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                       &workspace, sizeof workspace, &written);
  cublasLtMatmulPreferenceGetAttribute(preference.get(), CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                       &schemes, sizeof schemes, &written);
  cublasLtMatmulPreferenceGetAttribute(preference.get(), CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                                       &alignment, sizeof alignment, &written);
  EXPECT_EQ(workspace, 12345U);
  EXPECT_EQ(schemes, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  EXPECT_EQ(alignment, 64U);
}

}  // namespace
}  // namespace fluid::cuda::matmul_description_test
