#pragma once

// Conformance tests of the functions of a GPU backend. Each program that links them chooses the
// GPUs on which they run.

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "executor/gpu_driver/gpu.h"
#include "tests/support/gpu_convolution_cases.h"
#include "tests/support/product_data.h"

namespace fluid::testing {

/// A GPU that the tests run on.
struct GpuUnderTest {
  std::string name;
  bool is_host = false;  ///< whether the host stands in for the GPU
  /// Resets the GPU and returns its functions; null if there is no GPU.
  std::function<const FluidGpuTable*()> prepare;
  std::function<void()> finish = [] {};  ///< once all is given back
};
inline void PrintTo(const GpuUnderTest& gpu, std::ostream* out) { *out << gpu.name; }
inline std::string gpu_test_name(const ::testing::TestParamInfo<GpuUnderTest>& info) {
  return info.param.name;
}

class OnGpuUnderTest : public ::testing::TestWithParam<GpuUnderTest> {
 protected:
  void SetUp() override {
    const FluidGpuTable* table = GetParam().prepare();
    if (table == nullptr) GTEST_SKIP() << "no GPU";
    gpu_.emplace(*table, 0);
    a_ = gpu_->create_stream();
    b_ = gpu_->create_stream();
  }
  void TearDown() override {
    a_ = {};
    b_ = {};
    gpu_.reset();
    GetParam().finish();
  }

  std::optional<Gpu> gpu_;
  GpuStream a_, b_;
};

/// Tests of memory, streams, events, captures and code.
class GpuConformance : public OnGpuUnderTest {
 protected:
  static constexpr int64_t kElements = 1000, kBytes = kElements * 8;

  void SetUp() override;
  void TearDown() override {
    module_ = {};
    OnGpuUnderTest::TearDown();
  }

  /// x[i] = 3 x[i] + added: the order of two of them shows.
  void mix_in(const GpuStream& stream, const GpuMemory& memory, int64_t added);
  std::vector<int64_t> read(const GpuMemory& memory);
  GpuMemory zeros();
  GpuEvent timer() { return gpu_->create_event(fluid_gpu_event_timing); }
  static std::vector<int64_t> all(int64_t value) { return std::vector(kElements, value); }

  GpuModule module_;
  FluidGpuKernel* mix_ = nullptr;
};

/// Tests of matrix products.
class GpuProductConformance : public OnGpuUnderTest {
 protected:
  static constexpr int64_t kWorkspace = 1 << 20;

  ProductMemory memory_of(const FluidGpuMatmul& p, const ProductData& data) const {
    return {*gpu_, a_, p, data, kWorkspace};
  }
  FluidGpuAlgorithm first_choice(const FluidGpuMatmul& p) {
    return gpu_->algorithms(p, kWorkspace, 8).at(0);
  }
  void expect_right(const FluidGpuMatmul& p);
};

/// Tests of convolutions.
class GpuConvolutionConformance : public OnGpuUnderTest {
 protected:
  static constexpr int64_t kWorkspace = kConformanceWorkspace;

  ConvolutionMemory memory_of(const FluidGpuConvolution& c, const ConvolutionData& data) const {
    return {*gpu_, a_, c, data, kWorkspace};
  }
  FluidGpuAlgorithm first_choice(const FluidGpuConvolution& c) {
    return gpu_->algorithms(c, kWorkspace, 8).at(0);
  }
  void expect_right(const FluidGpuConvolution& c);
};

}  // namespace fluid::testing
