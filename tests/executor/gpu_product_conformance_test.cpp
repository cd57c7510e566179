// What the executor expects of a GPU's products of matrices, checked on the host that stands in for
// one.

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/host_gpu.h"
#include "tests/support/product_data.h"

namespace fluid {
namespace {

using fluid::testing::fail_host_gpu;
using fluid::testing::host_gpu_objects;
using fluid::testing::host_gpu_table;
using fluid::testing::HostPace;
using fluid::testing::product_of;
using fluid::testing::ProductData;
using fluid::testing::ProductMemory;

constexpr int64_t kWorkspace = 1 << 20;

struct Kind {
  const char* name;
  HostPace pace;
};

class GpuProductConformance : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    fluid::testing::reset_host_gpu({.pace = GetParam().pace});
    gpu_.emplace(host_gpu_table(), 0);
    stream_ = gpu_->stream();
  }
  void TearDown() override {
    stream_ = {};
    gpu_.reset();
    EXPECT_EQ(host_gpu_objects(), 0);
  }

  ProductMemory memory_of(const FluidGpuProduct& p, const ProductData& data) const {
    return {*gpu_, stream_, p, data, kWorkspace};
  }
  FluidGpuChoice first_choice(const FluidGpuProduct& p) {
    return gpu_->choices(p, kWorkspace, 8).at(0);
  }
  void expect_right(const FluidGpuProduct& p) {
    const ProductData data(p);
    const ProductMemory memory = memory_of(p, data);
    const std::vector<FluidGpuChoice> choices = gpu_->choices(p, kWorkspace, 8);
    ASSERT_FALSE(choices.empty());
    for (const FluidGpuChoice& choice : choices) {
      const GpuMultiplier multiplier = gpu_->multiplier(p, choice);
      ASSERT_TRUE(multiplier);
      gpu_->fill(stream_, memory.factors().result, 0xff, p.count * p.result_matrix);
      gpu_->multiply(stream_, multiplier, memory.factors());
      EXPECT_EQ(memory.result(), data.expected(p));
    }
  }

  std::optional<Gpu> gpu_;
  GpuStream stream_;
};

TEST_P(GpuProductConformance, EveryNumberAndTranspositionIsMultiplied) {
  for (const auto number : {fluid_gpu_f64, fluid_gpu_f32, fluid_gpu_f16, fluid_gpu_bf16}) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        for (const int64_t count : {1, 3}) {
          SCOPED_TRACE(::testing::Message()
                       << number << ' ' << transpose_a << transpose_b << ' ' << count);
          expect_right(product_of(number, transpose_a, transpose_b, count));
        }
      }
    }
  }
}

TEST_P(GpuProductConformance, EveryEpilogueIsApplied) {
  for (const auto number : {fluid_gpu_f32, fluid_gpu_f16, fluid_gpu_bf16}) {
    FluidGpuProduct p = product_of(number);
    p.bias = 1;
    expect_right(p);
    p.relu = 1;
    expect_right(p);
    p.bias = 0;
    expect_right(p);
  }
  for (const auto number : {fluid_gpu_f64, fluid_gpu_f32, fluid_gpu_f16, fluid_gpu_bf16}) {
    FluidGpuProduct p = product_of(number, true, false, 2);
    p.adds = 1;
    expect_right(p);
  }
}

TEST_P(GpuProductConformance, HalvesMayBecomeF32) {
  for (const auto number : {fluid_gpu_f16, fluid_gpu_bf16}) {
    FluidGpuProduct p = product_of(number);
    p.result = fluid_gpu_f32;
    p.bias = 1;
    expect_right(p);
  }
}

TEST_P(GpuProductConformance, OnlyTf32RoundsOperands) {
  FluidGpuProduct p = product_of(fluid_gpu_f32);
  p.m = p.n = p.k = p.a_row = p.b_row = p.result_row = 1;
  p.a_matrix = p.b_matrix = p.result_matrix = 1;
  ProductData data(p);
  data.a.as<float>()[0] = 1.0001f;
  data.b.as<float>()[0] = 1;
  const ProductMemory memory = memory_of(p, data);
  const FluidGpuFactors f = memory.factors();
  const auto product = [&](bool tf32) {
    p.tf32 = tf32;
    const GpuMultiplier multiplier = gpu_->multiplier(p, first_choice(p));
    gpu_->multiply(stream_, multiplier, f);
    return memory.read(f.result).at(0);
  };
  EXPECT_EQ(product(false), 1.0001f);
  EXPECT_EQ(product(true), 1);
}

TEST_P(GpuProductConformance, TheAddendMayBeTheResult) {
  FluidGpuProduct p = product_of(fluid_gpu_f32, true);
  p.adds = 1;
  const ProductData data(p);
  const ProductMemory memory = memory_of(p, data);
  FluidGpuFactors f = memory.factors();
  f.result = const_cast<void*>(f.addend);
  const GpuMultiplier multiplier = gpu_->multiplier(p, first_choice(p));
  gpu_->multiply(stream_, multiplier, f);
  EXPECT_EQ(memory.read(f.result), data.expected(p));
}

TEST_P(GpuProductConformance, AGraphMultipliesAgain) {
  FluidGpuProduct p = product_of(fluid_gpu_f32);
  p.adds = 1;
  const ProductData data(p);
  const ProductMemory memory = memory_of(p, data);
  FluidGpuFactors f = memory.factors();
  const GpuMultiplier multiplier = gpu_->multiplier(p, first_choice(p));
  gpu_->multiply(stream_, multiplier, f);
  gpu_->synchronize(stream_);
  f.result = const_cast<void*>(f.addend);  // other addresses than those it began with
  const std::vector<double> before = memory.read(f.addend);
  gpu_->begin_capture(stream_);
  gpu_->multiply(stream_, multiplier, f);
  const GpuGraph graph = gpu_->end_capture(stream_);
  EXPECT_EQ(memory.read(f.result), before);
  std::vector<double> expected = data.expected(p);
  gpu_->launch(graph, stream_);
  EXPECT_EQ(memory.read(f.result), expected);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += expected[i] - before[i];
  gpu_->launch(graph, stream_);
  EXPECT_EQ(memory.read(f.result), expected);
}

TEST_P(GpuProductConformance, ChoicesFitTheWorkspace) {
  const FluidGpuProduct p = product_of(fluid_gpu_f32);
  const std::vector<FluidGpuChoice> all = gpu_->choices(p, kWorkspace, 8);
  ASSERT_GT(all.size(), 1U);
  for (const FluidGpuChoice& choice : all) {
    const auto fitting = gpu_->choices(p, choice.workspace, 8);
    ASSERT_FALSE(fitting.empty());
    for (const FluidGpuChoice& fits : fitting) EXPECT_LE(fits.workspace, choice.workspace);
  }
  EXPECT_EQ(gpu_->choices(p, kWorkspace, 1).size(), 1U);
}

TEST_P(GpuProductConformance, AWorkspaceThatIsTooSmallFails) {
  const FluidGpuProduct p = product_of(fluid_gpu_f32);
  const ProductMemory memory = memory_of(p, ProductData(p));
  FluidGpuFactors f = memory.factors();
  const FluidGpuChoice choice = first_choice(p);
  ASSERT_GT(choice.workspace, 64);
  const GpuMemory small = gpu_->allocate(64);
  f.workspace = small.data();
  const GpuMultiplier multiplier = gpu_->multiplier(p, choice);
  const auto multiply = [&] {
    gpu_->multiply(stream_, multiplier, f);
    gpu_->synchronize(stream_);
  };
  EXPECT_NE(error_of<DeviceError>(multiply).find("memory that was never given"), std::string::npos);
}

TEST_P(GpuProductConformance, ProductsThatThereCannotBeAreMisused) {
  FluidGpuProduct p = product_of(fluid_gpu_f32);
  FluidGpuChoice choice = first_choice(p);
  const auto expect_misused = [&](const FluidGpuProduct& wrong) {
    EXPECT_THROW(gpu_->choices(wrong, kWorkspace, 8), DeviceError);
    EXPECT_FALSE(gpu_->multiplier(wrong, choice));
  };
  const auto changed = [&](auto change) {
    FluidGpuProduct wrong = p;
    change(wrong);
    return wrong;
  };
  using P = FluidGpuProduct;
  expect_misused(changed([](P& w) { w.k = 0; }));
  expect_misused(changed([](P& w) { w.count = 70'000; }));
  expect_misused(changed([](P& w) { w.result = fluid_gpu_f16; }));
  expect_misused(changed([](P& w) { w.adds = w.bias = 1; }));
  expect_misused(changed([](P& w) { w.b_row = 1; }));
  expect_misused(changed([](P& w) {
    w.operands = w.result = fluid_gpu_f64;
    w.bias = 1;
  }));
  choice.opaque[0] ^= 1;
  EXPECT_FALSE(gpu_->multiplier(p, choice)) << "of another library";
}

TEST_P(GpuProductConformance, AddressesAreAlignedAndThere) {
  FluidGpuProduct p = product_of(fluid_gpu_f32);
  p.bias = 1;
  const ProductData data(p);
  const ProductMemory memory = memory_of(p, data);
  const FluidGpuFactors good = memory.factors();
  const GpuMultiplier multiplier = gpu_->multiplier(p, first_choice(p));
  FluidGpuFactors wrong = good;
  wrong.bias = nullptr;
  EXPECT_THROW(gpu_->multiply(stream_, multiplier, wrong), DeviceError);
  wrong.bias = static_cast<const std::byte*>(good.bias) + 4;
  EXPECT_THROW(gpu_->multiply(stream_, multiplier, wrong), DeviceError);
  gpu_->multiply(stream_, multiplier, good);
  EXPECT_EQ(memory.read(good.result), data.expected(p));
}

TEST_P(GpuProductConformance, PreparingDuringACaptureLosesIt) {
  const FluidGpuProduct p = product_of(fluid_gpu_f32);
  const FluidGpuChoice choice = first_choice(p);
  gpu_->begin_capture(stream_);
  EXPECT_THROW(gpu_->choices(p, kWorkspace, 8), DeviceError);
  EXPECT_THROW(gpu_->end_capture(stream_), DeviceError);
  gpu_->begin_capture(stream_);
  EXPECT_FALSE(gpu_->multiplier(p, choice));
  EXPECT_THROW(gpu_->end_capture(stream_), DeviceError);
}

TEST_P(GpuProductConformance, TheFirstTimeIsNotDuringACapture) {
  const FluidGpuProduct p = product_of(fluid_gpu_f32);
  const ProductData data(p);
  const ProductMemory memory = memory_of(p, data);
  const FluidGpuFactors f = memory.factors();
  const GpuMultiplier multiplier = gpu_->multiplier(p, first_choice(p));
  gpu_->begin_capture(stream_);
  EXPECT_THROW(gpu_->multiply(stream_, multiplier, f), DeviceError);
  EXPECT_THROW(gpu_->end_capture(stream_), DeviceError);
  gpu_->multiply(stream_, multiplier, f);
  EXPECT_EQ(memory.read(f.result), data.expected(p));
}

TEST_P(GpuProductConformance, CallsThatAreToldToFailDo) {
  const FluidGpuProduct p = product_of(fluid_gpu_f32);
  const ProductMemory memory = memory_of(p, ProductData(p));
  const FluidGpuFactors f = memory.factors();
  fail_host_gpu("matmul_choices", fluid_gpu_out_of_memory);
  EXPECT_EQ(error_of<DeviceError>([&] { first_choice(p); }), "matmul_choices was told to fail");
  const FluidGpuChoice choice = first_choice(p);
  fail_host_gpu("multiplier_create", fluid_gpu_out_of_memory);
  EXPECT_EQ(error_of<DeviceError>([&] { gpu_->multiplier(p, choice); }),
            "multiplier_create was told to fail");
  const GpuMultiplier multiplier = gpu_->multiplier(p, choice);
  fail_host_gpu("multiply", fluid_gpu_failed);
  EXPECT_EQ(error_of<DeviceError>([&] { gpu_->multiply(stream_, multiplier, f); }),
            "multiply was told to fail");
  EXPECT_THROW(gpu_->synchronize(stream_), DeviceError);
}

INSTANTIATE_TEST_SUITE_P(Host, GpuProductConformance,
                         ::testing::Values(Kind{"early", HostPace::early},
                                           Kind{"late", HostPace::late},
                                           Kind{"random", HostPace::random}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace fluid
