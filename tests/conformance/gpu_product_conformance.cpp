// Products of matrices by the library of a GPU.

#include "tests/conformance/gpu_conformance.h"
#include "tests/support/errors.h"

namespace fluid::testing {

void GpuProductConformance::expect_right(const FluidGpuMatmul& p) {
  const ProductData data(p);
  const ProductMemory memory = memory_of(p, data);
  const std::vector<FluidGpuAlgorithm> choices = gpu_->algorithms(p, kWorkspace, 8);
  ASSERT_FALSE(choices.empty());
  for (const FluidGpuAlgorithm& choice : choices) {
    EXPECT_LE(choice.workspace, kWorkspace);
    const GpuPlan gpu_plan = gpu_->create_plan(p, choice);
    ASSERT_TRUE(gpu_plan);
    gpu_->fill(a_, memory.factors().result, 0xff, p.count * p.result_matrix_stride);
    gpu_->execute_plan(a_, gpu_plan, memory.factors());
    EXPECT_EQ(memory.result(), data.expected(p));
  }
}

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
    FluidGpuMatmul p = product_of(number);
    p.bias = 1;
    expect_right(p);
    p.relu = 1;
    expect_right(p);
    p.bias = 0;
    expect_right(p);
  }
  for (const auto number : {fluid_gpu_f64, fluid_gpu_f32, fluid_gpu_f16, fluid_gpu_bf16}) {
    FluidGpuMatmul p = product_of(number, true, false, 2);
    p.has_addend = 1;
    expect_right(p);
  }
}

TEST_P(GpuProductConformance, HalvesMayBecomeF32) {
  for (const auto number : {fluid_gpu_f16, fluid_gpu_bf16}) {
    FluidGpuMatmul p = product_of(number);
    p.result = fluid_gpu_f32;
    p.bias = 1;
    expect_right(p);
  }
}

TEST_P(GpuProductConformance, OnlyTf32RoundsOperands) {
  FluidGpuMatmul p = product_of(fluid_gpu_f32, false, false, 1, {64, 64, 64});
  ProductData data(p);
  for (float& x : data.a.as<float>()) x = 1.0001f;
  for (float& x : data.b.as<float>()) x = 1;
  const ProductMemory memory = memory_of(p, data);
  const double exact = 64 * static_cast<double>(1.0001f);
  for (const bool tf32 : {false, true}) {
    p.tf32 = tf32;
    for (const FluidGpuAlgorithm& choice : gpu_->algorithms(p, kWorkspace, 8)) {
      const GpuPlan gpu_plan = gpu_->create_plan(p, choice);
      gpu_->execute_plan(a_, gpu_plan, memory.factors());
      const double found = memory.result().front();
      EXPECT_NEAR(found, exact, tf32 ? 1e-2 : 1e-3);
      EXPECT_TRUE(found == 64 || !tf32 || !GetParam().is_host) << found;
    }
  }
}

TEST_P(GpuProductConformance, TheAddendMayBeTheResult) {
  FluidGpuMatmul p = product_of(fluid_gpu_f32, true);
  p.has_addend = 1;
  const ProductData data(p);
  const ProductMemory memory = memory_of(p, data);
  FluidGpuOperands f = memory.factors();
  f.result = const_cast<void*>(f.addend);
  const GpuPlan gpu_plan = gpu_->create_plan(p, first_choice(p));
  gpu_->execute_plan(a_, gpu_plan, f);
  EXPECT_EQ(memory.read(f.result), data.expected(p));
}

TEST_P(GpuProductConformance, AGraphMultipliesAgain) {
  FluidGpuMatmul p = product_of(fluid_gpu_f32);
  p.has_addend = 1;
  const ProductData data(p);
  const ProductMemory memory = memory_of(p, data);
  FluidGpuOperands f = memory.factors();
  const GpuPlan gpu_plan = gpu_->create_plan(p, first_choice(p));
  gpu_->execute_plan(a_, gpu_plan, f);
  gpu_->synchronize(a_);
  f.result = const_cast<void*>(f.addend);  // other addresses than those it began with
  const std::vector<double> before = memory.read(f.addend);
  gpu_->begin_capture(a_);
  gpu_->execute_plan(a_, gpu_plan, f);
  const GpuGraph graph = gpu_->end_capture(a_);
  EXPECT_EQ(memory.read(f.result), before);
  std::vector<double> expected = data.expected(p);
  gpu_->launch(graph, a_);
  EXPECT_EQ(memory.read(f.result), expected);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += expected[i] - before[i];
  gpu_->launch(graph, a_);
  EXPECT_EQ(memory.read(f.result), expected);
}

TEST_P(GpuProductConformance, ChoicesFitTheWorkspace) {
  const FluidGpuMatmul p = product_of(fluid_gpu_f32);
  const std::vector<FluidGpuAlgorithm> all = gpu_->algorithms(p, kWorkspace, 8);
  ASSERT_FALSE(all.empty());
  EXPECT_TRUE(all.size() > 1 || !GetParam().is_host);
  for (const FluidGpuAlgorithm& choice : all) {
    const auto fitting = gpu_->algorithms(p, choice.workspace, 8);
    ASSERT_FALSE(fitting.empty());
    for (const FluidGpuAlgorithm& fits : fitting) EXPECT_LE(fits.workspace, choice.workspace);
  }
  EXPECT_EQ(gpu_->algorithms(p, kWorkspace, 1).size(), 1U);
}

TEST_P(GpuProductConformance, ProductsThatThereCannotBeAreMisused) {
  FluidGpuMatmul p = product_of(fluid_gpu_f32);
  FluidGpuAlgorithm choice = first_choice(p);
  const auto expect_misused = [&](const FluidGpuMatmul& wrong) {
    EXPECT_THROW(gpu_->algorithms(wrong, kWorkspace, 8), DeviceError);
    EXPECT_FALSE(gpu_->create_plan(wrong, choice));
  };
  const auto changed = [&](auto change) {
    FluidGpuMatmul wrong = p;
    change(wrong);
    return wrong;
  };
  using P = FluidGpuMatmul;
  expect_misused(changed([](P& w) { w.k = 0; }));
  expect_misused(changed([](P& w) { w.count = 70'000; }));
  expect_misused(changed([](P& w) { w.result = fluid_gpu_f16; }));
  expect_misused(changed([](P& w) { w.has_addend = w.bias = 1; }));
  expect_misused(changed([](P& w) { w.b_row_stride = 1; }));
  expect_misused(changed([](P& w) {
    w.operands = w.result = fluid_gpu_f64;
    w.bias = 1;
  }));
  choice.opaque[0] ^= 1;
  EXPECT_FALSE(gpu_->create_plan(p, choice)) << "of another library";
}

TEST_P(GpuProductConformance, AddressesAreAlignedAndThere) {
  FluidGpuMatmul p = product_of(fluid_gpu_f32);
  p.bias = 1;
  const ProductData data(p);
  const ProductMemory memory = memory_of(p, data);
  const FluidGpuOperands good = memory.factors();
  const GpuPlan gpu_plan = gpu_->create_plan(p, first_choice(p));
  FluidGpuOperands wrong = good;
  wrong.bias = nullptr;
  EXPECT_THROW(gpu_->execute_plan(a_, gpu_plan, wrong), DeviceError);
  wrong.bias = static_cast<const std::byte*>(good.bias) + 4;
  EXPECT_THROW(gpu_->execute_plan(a_, gpu_plan, wrong), DeviceError);
  for (const FluidGpuAlgorithm& choice : gpu_->algorithms(p, kWorkspace, 8)) {
    if (choice.workspace == 0) continue;
    wrong = good;
    wrong.workspace = static_cast<std::byte*>(good.workspace) + FLUID_GPU_TENSOR_ALIGNMENT;
    EXPECT_THROW(gpu_->execute_plan(a_, gpu_->create_plan(p, choice), wrong), DeviceError);
  }
  gpu_->execute_plan(a_, gpu_plan, good);
  EXPECT_EQ(memory.read(good.result), data.expected(p));
}

TEST_P(GpuProductConformance, PreparingDuringACaptureLosesIt) {
  const FluidGpuMatmul p = product_of(fluid_gpu_f32);
  const FluidGpuAlgorithm choice = first_choice(p);
  gpu_->begin_capture(a_);
  EXPECT_THROW(gpu_->algorithms(p, kWorkspace, 8), DeviceError);
  EXPECT_THROW(gpu_->end_capture(a_), DeviceError);
  gpu_->begin_capture(a_);
  EXPECT_FALSE(gpu_->create_plan(p, choice));
  EXPECT_THROW(gpu_->end_capture(a_), DeviceError);
}

TEST_P(GpuProductConformance, TheFirstTimeIsNotDuringACapture) {
  const FluidGpuMatmul p = product_of(fluid_gpu_f32);
  const ProductData data(p);
  const ProductMemory memory = memory_of(p, data);
  const FluidGpuOperands f = memory.factors();
  const GpuPlan gpu_plan = gpu_->create_plan(p, first_choice(p));
  gpu_->begin_capture(a_);
  EXPECT_THROW(gpu_->execute_plan(a_, gpu_plan, f), DeviceError);
  EXPECT_THROW(gpu_->end_capture(a_), DeviceError);
  gpu_->execute_plan(a_, gpu_plan, f);
  EXPECT_EQ(memory.read(f.result), data.expected(p));
}

}  // namespace fluid::testing
