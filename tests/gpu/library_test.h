#pragma once

#include <optional>

#include "executor/gpu_driver/gpu.h"
#include "tests/gpu/gpu_test.h"

namespace fluid {

/// Tests of a GPU's libraries, without the executor: a GPU and a stream.
class GpuLibraryTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    gpu_.emplace(require_supported_gpu(gpu_backend(), 0), 0);
    stream_ = gpu_->create_stream();
  }
  void TearDown() override {
    stream_ = {};
    gpu_.reset();
  }

  std::optional<Gpu> gpu_;
  GpuStream stream_;
};

}  // namespace fluid
