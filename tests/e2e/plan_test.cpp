// The memory plans of the examples, for whole batches and for the rest of an epoch.

#include <gtest/gtest.h>

#include <filesystem>

#include "executor/cpu/cpu_target.h"
#include "frontend/fluid.h"
#include "frontend/readers/digits.h"
#include "ir/print.h"
#include "passes/memory_plan.h"
#include "passes/pass.h"
#include "tests/support/training.h"

namespace fluid::plan_test {
namespace {

struct Example {
  const char* name;
  int64_t batch, rest;
};

std::ostream& operator<<(std::ostream& out, const Example& example) { return out << example.name; }

class PlanOfExample : public ::testing::TestWithParam<Example> {
 protected:
  void SetUp() override {
    const std::filesystem::path examples = std::filesystem::path(FLUID_BINARY_DIR) / "examples";
    const std::string name = GetParam().name;
    if (!std::filesystem::exists(examples)) GTEST_SKIP() << "the examples are not built";
    program_.emplace(Program::load(examples / (name + ".fluid")));
  }

  Dataset data() const {
    const int64_t samples = GetParam().batch + GetParam().rest;
    if (program_->ir().main().find("data", "image") != nullptr) return generate_digits(samples, 3);
    return open_data("synthetic-linear?limit=" + std::to_string(samples)).dataset();
  }

  std::vector<std::byte> trained(const ExecutorOptions& options) const {
    Reader reader(data(), {.batch = GetParam().batch, .shuffle_seed = 1});
    EXPECT_EQ(reader.batch_sizes(), (std::vector{GetParam().batch, GetParam().rest}));
    Executor exe(*program_, cpu(), options);
    exe.prepare({.train = reader.batch_sizes(), .eval = reader.batch_sizes()});
    for (const Batch& batch : reader) {
      exe.run(batch);
      exe.eval(batch);
    }
    return parameter_bytes(exe);
  }

  std::optional<Program> program_;
};

TEST_P(PlanOfExample, IsSafe) {
  const CpuTarget target(describe_host(2));
  bool library = false, channels_last = false;
  for (const Mode mode : {Mode::init, Mode::train, Mode::eval, Mode::predict}) {
    for (const int64_t batch : {GetParam().batch, GetParam().rest}) {
      for (const bool guard : {false, true}) {
        const Options options{.mode = mode, .batch = batch, .guard_plan = guard};
        const auto program = program_->ir().clone();
        run_passes(*program, pipeline(options), options, target);
        verify_plan(memory_plan(*program, options), *program, options);
        const std::string text = ir::print(*program);
        library |= text.find("kernel = \"") != std::string::npos;
        channels_last |= text.find("{nhwc}") != std::string::npos;
      }
    }
  }
  EXPECT_EQ(channels_last, library) << "layouts are there for library kernels";
}

TEST_P(PlanOfExample, GivesTheSameBitsWhileItIsChecked) {
  EXPECT_EQ(trained({.debug = {.verify_plan = true}}), trained({}));
}

INSTANTIATE_TEST_SUITE_P(Examples, PlanOfExample,
                         ::testing::Values(Example{"linear_regression", 5000, 123},
                                           Example{"mnist_fluid", 100, 27},
                                           Example{"mnist_cnn", 128, 96}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(PlanOfAlexNet, TrainsInAGibibyte) {
  const std::filesystem::path path(FLUID_BINARY_DIR "/examples/alexnet_cifar10.fluid");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "the examples are not built";
  const auto program = Program::load(path).ir().clone();
  const Options options{.mode = Mode::train, .batch = 64};
  run_passes(*program, pipeline(options), options, CpuTarget(describe_host(2)));
  const double mib = static_cast<double>(memory_plan(*program, options).total(1)) / (1 << 20);
  EXPECT_LE(mib, 1000);
  EXPECT_GE(mib, 653) << "less than its parameters and their optimizer's state";
}

TEST(PlanOfAttention, GrowsLinearlyWithTheLength) {
  constexpr int64_t kHeads = 8, kDepth = 64;
  for (const auto& [length, alibi] : {std::pair(1024, false), {4096, false}, {4096, true}}) {
    Program net("attention");
    const Shape shape{1, kHeads, length, kDepth};
    const Value q = net.data("q", shape, f32), k = net.data("k", shape, f32),
                v = net.data("v", shape, f32), dy = net.data("dy", shape, f32);
    const Value y = scaled_dot_product_attention(q, k, v, {.causal = true, .alibi = alibi});
    net.output("y", y);
    const Values gradients_of_y = gradients(y * dy, {q, k, v});
    for (size_t i = 0; i < 3; ++i) net.output("d" + std::to_string(i), gradients_of_y[i]);
    const auto program = net.ir().clone();
    const Options options{.mode = Mode::predict, .batch = 1, .feeds = {"q", "k", "v", "dy"}};
    run_passes(*program, pipeline(options), options, CpuTarget(describe_host(2)));
    const MemoryPlan plan = memory_plan(*program, options);
    constexpr int64_t kTensors = 8;  // four feeds, y and three gradients
    const auto tensors = static_cast<double>(kTensors * q.type().bytes_at(1));
    const auto arena = static_cast<double>(plan.feeds + plan.outputs + plan.transient);
    EXPECT_GE(arena, tensors);
    EXPECT_LE(arena, 1.3 * tensors) << length;
  }
}

}  // namespace
}  // namespace fluid::plan_test
