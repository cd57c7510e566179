#pragma once

#include <cublasLt.h>

#include "executor/cuda/column_major.h"

namespace fluid::cuda {

/// Runs a sequence of cuBLASLt calls until one fails, and stores the status of the failed call.
class BlasCalls {
 public:
  template <class Call>
  void run(Call&& call) {
    if (status_ == CUBLAS_STATUS_SUCCESS) status_ = call();
  }
  cublasStatus_t status() const { return status_; }

 private:
  cublasStatus_t status_ = CUBLAS_STATUS_SUCCESS;
};

/// The cuBLASLt descriptors of a matmul. The descriptors are created without a GPU, and need not be
/// destroyed.
class MatmulDescription {
 public:
  explicit MatmulDescription(const FluidGpuMatmul& matmul);

  cublasStatus_t status() const { return calls_.status(); }
  void set_bias(const void* address) { set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, address); }

  /// Calls `call` with pointers to the operation descriptor and to the layouts of A, B, C and D,
  /// and returns the status of `call`. If the creation of a descriptor failed, returns its error
  /// status instead, without calling `call`.
  template <class Call>
  cublasStatus_t call_with(Call&& call) {
    if (status() != CUBLAS_STATUS_SUCCESS) return status();
    return call(&operation_, &first_, &second_, &result_, &result_);
  }

 private:
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    calls_.run([&] {
      return cublasLtMatmulDescSetAttribute(&operation_, attribute, &value, sizeof value);
    });
  }
  void init_layout(cublasLtMatrixLayoutOpaque_t& layout, FluidGpuDtype dtype,
                   const ColumnMajorLayout& matrices, int64_t count);

  BlasCalls calls_;
  cublasLtMatmulDescOpaque_t operation_ = {};
  cublasLtMatrixLayoutOpaque_t first_ = {}, second_ = {}, result_ = {};
};

/// A cuBLASLt preference. It restricts the heuristics to deterministic algorithms that need at most
/// `workspace` bytes and accumulate in the compute type.
class MatmulPreference {
 public:
  explicit MatmulPreference(int64_t workspace);
  cublasStatus_t status() const { return calls_.status(); }
  cublasLtMatmulPreference_t get() { return &preference_; }

 private:
  BlasCalls calls_;
  cublasLtMatmulPreferenceOpaque_t preference_ = {};
};

}  // namespace fluid::cuda
