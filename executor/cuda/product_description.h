#pragma once

#include <cublasLt.h>

#include "executor/cuda/column_major.h"

namespace fluid::cuda {

/// Runs calls until one fails, and keeps its status.
class BlasCalls {
 public:
  template <class Call>
  void then(Call&& call) {
    if (status_ == CUBLAS_STATUS_SUCCESS) status_ = call();
  }
  cublasStatus_t status() const { return status_; }

 private:
  cublasStatus_t status_ = CUBLAS_STATUS_SUCCESS;
};

/// The cuBLASLt descriptors of a matmul. Needs no GPU and owns no resources.
class ProductDescription {
 public:
  explicit ProductDescription(const FluidGpuMatmul& product);

  cublasStatus_t status() const { return calls_.status(); }
  void set_bias(const void* address) { set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, address); }

  /// Calls `call` with the operation and the layouts of A, B, C and D, and returns its status. If
  /// creating a descriptor failed, returns the status of the failure instead.
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
  void lay_out(cublasLtMatrixLayoutOpaque_t& layout, FluidGpuDtype number,
               const ColumnMajor& matrices, int64_t count);

  BlasCalls calls_;
  cublasLtMatmulDescOpaque_t operation_ = {};
  cublasLtMatrixLayoutOpaque_t first_ = {}, second_ = {}, result_ = {};
};

/// Restricts the heuristics to algorithms that need at most `workspace` bytes, accumulate in the
/// compute type, and are deterministic.
class ProductPreference {
 public:
  explicit ProductPreference(int64_t workspace);
  cublasStatus_t status() const { return calls_.status(); }
  cublasLtMatmulPreference_t get() { return &preference_; }

 private:
  BlasCalls calls_;
  cublasLtMatmulPreferenceOpaque_t preference_ = {};
};

}  // namespace fluid::cuda
