#pragma once

#include <cublasLt.h>

#include "executor/cuda/column_major.h"

namespace fluid::cuda {

/// Calls as long as they go well.
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

/// A product in cuBLASLt's terms. Needs no GPU, and nothing of it is to be given back.
class ProductDescription {
 public:
  explicit ProductDescription(const FluidGpuProduct& product);

  cublasStatus_t status() const { return calls_.status(); }
  void set_bias(const void* address) { set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, address); }

  /// What `call` returns of the operation and the layouts of A, B, C and D; or what went wrong
  /// before.
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
  void lay_out(cublasLtMatrixLayoutOpaque_t& layout, FluidGpuNumber number,
               const ColumnMajor& matrices, int64_t count);

  BlasCalls calls_;
  cublasLtMatmulDescOpaque_t operation_ = {};
  cublasLtMatrixLayoutOpaque_t first_ = {}, second_ = {}, result_ = {};
};

/// Which algorithms will do: those that need at most `workspace` bytes, keep sums in the type that
/// they are computed in, and add them up in an order that does not depend on who is done first.
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
