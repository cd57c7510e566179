// Runs the conformance tests on the host that stands in for a GPU, at each pace. Also tests the
// failures that it can simulate.

#include "tests/conformance/gpu_conformance.h"

#include <array>
#include <set>

#include "tests/support/errors.h"
#include "tests/support/host_gpu.h"
#include "tests/support/lack.h"

namespace fluid::testing::gpu_conformance_test {
namespace {

GpuUnderTest host_gpu(const std::string& name, HostPace pace, uint64_t seed = 0) {
  return {.name = name,
          .is_host = true,
          .prepare =
              [=] {
                reset_host_gpu({.pace = pace, .seed = seed, .memory = 64 << 20});
                return &host_gpu_table();
              },
          .finish = [] { EXPECT_EQ(host_gpu_objects(), 0); }};
}

const auto kHosts =
    ::testing::Values(host_gpu("early", HostPace::early), host_gpu("late", HostPace::late),
                      host_gpu("late_1", HostPace::late, 1), host_gpu("random", HostPace::random),
                      host_gpu("random_1", HostPace::random, 1));
INSTANTIATE_TEST_SUITE_P(Host, GpuConformance, kHosts, gpu_test_name);
INSTANTIATE_TEST_SUITE_P(Host, GpuProductConformance, kHosts, gpu_test_name);
INSTANTIATE_TEST_SUITE_P(Host, GpuConvolutionConformance, kHosts, gpu_test_name);

class HostGpuFailures : public GpuConformance {};
class HostGpuProductFailures : public GpuProductConformance {};
INSTANTIATE_TEST_SUITE_P(Host, HostGpuFailures, kHosts, gpu_test_name);
INSTANTIATE_TEST_SUITE_P(Host, HostGpuProductFailures, kHosts, gpu_test_name);

TEST_P(HostGpuFailures, FailedWorkIsToldWhenItIsWaitedForAndEverAfter) {
  const GpuMemory x = zeros();
  const auto queue_and_wait = [&] {
    gpu_->copy(a_, x.data() + 8, x.data(), kBytes);  // beyond its end
    gpu_->synchronize(a_);
  };
  const std::string why = error_of<DeviceError>(queue_and_wait);
  EXPECT_TRUE(
      states(why, "queued work failed: memory that was never given, or was returned, is touched"));
  EXPECT_EQ(error_of<DeviceError>([&] { gpu_->synchronize(b_); }), why);
}

TEST_P(HostGpuFailures, ACallThatIsToldToFailDoes) {
  const GpuMemory x = zeros();
  fail_host_gpu("launch", fluid_gpu_failed, 1);
  mix_in(a_, x, 1);
  EXPECT_TRUE(states(error_of<DeviceError>([&] { mix_in(a_, x, 2); }), "launch was told to fail"));
  EXPECT_THROW(gpu_->synchronize(a_), DeviceError);
}

TEST_P(HostGpuProductFailures, AWorkspaceThatIsTooSmallFails) {
  const FluidGpuMatmul p = product_of(fluid_gpu_f32);
  const ProductMemory memory = memory_of(p, ProductData(p));
  FluidGpuOperands f = memory.factors();
  const FluidGpuAlgorithm choice = first_choice(p);
  ASSERT_GT(choice.workspace, 64);
  const GpuMemory small = gpu_->allocate(64);
  f.workspace = small.data();
  const GpuPlan gpu_plan = gpu_->create_plan(p, choice);
  const auto multiply = [&] {
    gpu_->execute_plan(a_, gpu_plan, f);
    gpu_->synchronize(a_);
  };
  EXPECT_TRUE(states(error_of<DeviceError>(multiply), "memory that was never given"));
}

TEST_P(HostGpuProductFailures, CallsThatAreToldToFailDo) {
  const FluidGpuMatmul p = product_of(fluid_gpu_f32);
  const ProductMemory memory = memory_of(p, ProductData(p));
  const FluidGpuOperands f = memory.factors();
  fail_host_gpu("matmul_algorithms", fluid_gpu_out_of_memory);
  EXPECT_EQ(lack_of([&] { first_choice(p); }), "matmul_algorithms was told to fail");
  const FluidGpuAlgorithm choice = first_choice(p);
  fail_host_gpu("matmul_plan_create", fluid_gpu_out_of_memory);
  EXPECT_EQ(lack_of([&] { gpu_->create_plan(p, choice); }), "matmul_plan_create was told to fail");
  const GpuPlan gpu_plan = gpu_->create_plan(p, choice);
  fail_host_gpu("multiply", fluid_gpu_failed);
  EXPECT_TRUE(states(error_of<DeviceError>([&] { gpu_->execute_plan(a_, gpu_plan, f); }),
                     "multiply was told to fail"));
  EXPECT_THROW(gpu_->synchronize(a_), DeviceError);
}

/// Two streams write the same memory without synchronization. The stand-in must produce both
/// orders, so that tests detect such races.
TEST(HostGpu, RunsWorkInAnyOrderThatNobodyForbids) {
  std::set<int64_t> seen;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    reset_host_gpu({.seed = seed});
    const Gpu gpu(host_gpu_table(), 0);
    const GpuStream a = gpu.create_stream(), b = gpu.create_stream();
    const GpuMemory x = gpu.allocate(1), host = gpu.allocate_host(1);
    gpu.fill(a, x.data(), 1, 1);
    gpu.fill(b, x.data(), 2, 1);
    gpu.synchronize(b);
    gpu.synchronize(a);
    gpu.copy(a, host.data(), x.data(), 1);
    gpu.synchronize(a);
    seen.insert(static_cast<int64_t>(*host.data()));
  }
  EXPECT_EQ(seen, (std::set<int64_t>{1, 2}));
}

TEST(HostGpu, QueuedWorkIsNotDoneBeforeSomebodyWaits) {
  reset_host_gpu({.pace = HostPace::late});
  const Gpu gpu(host_gpu_table(), 0);
  const GpuStream stream = gpu.create_stream();
  const GpuEvent event = gpu.create_event();
  gpu.record(event, stream);
  EXPECT_FALSE(gpu.is_done(event));
  gpu.synchronize(event);
  EXPECT_TRUE(gpu.is_done(event));
}

/// Memory of the GPU that a kernel has, or a copy, and of the host. A GPU would not notice, as the
/// graph may not be launched again; so this one fails, and counts what did not come back.
TEST(HostGpu, MemoryOutlivesTheGraphsThatReferToIt) {
  for (const size_t early : {0, 1, 2}) {
    reset_host_gpu({});
    const Gpu gpu(host_gpu_table(), 0);
    const GpuStream stream = gpu.create_stream();
    const GpuModule module =
        gpu.load_module(host_gpu_text({{"nothing", [](const FluidGpuLaunch&) {}}}));
    FluidGpuKernel* kernel = gpu.kernel(module, "nothing");
    std::array memory = {gpu.allocate(16), gpu.allocate(16), gpu.allocate_host(16)};
    GpuMemory other = gpu.allocate(16);
    std::byte* inside = memory[0].data() + 8;
    const GpuGraph graph = gpu.capture(stream, [&] {
      gpu.launch(stream, kernel, 1, 1, std::array<void*, 1>{&inside});
      gpu.copy(stream, memory[2].data() + 8, memory[1].data() + 8, 8);
    });
    const int objects = host_gpu_objects();
    other = {};
    gpu.synchronize(stream);
    EXPECT_EQ(host_gpu_objects(), objects);
    memory[early] = {};
    EXPECT_TRUE(states(error_of<DeviceError>([&] { gpu.synchronize(stream); }),
                       "memory is returned that a graph refers to"))
        << early;
    EXPECT_EQ(host_gpu_objects(), objects + 1) << early;
  }
}

TEST(HostGpuDeathTest, NobodyElseTouchesItsMemory) {
  reset_host_gpu({});
  const Gpu gpu(host_gpu_table(), 0);
  const GpuMemory x = gpu.allocate(1);
  EXPECT_DEATH(*x.data() = std::byte{1}, "");
}

}  // namespace
}  // namespace fluid::testing::gpu_conformance_test
