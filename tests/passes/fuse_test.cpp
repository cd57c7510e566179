// How many kernels are left of small programs, and that they compute what the ops did.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "ir/parse.h"
#include "ir/print.h"
#include "ops/table.h"
#include "passes/pass.h"

namespace fluid::fuse_test {
namespace {

/// A machine without library kernels.
class Bare : public Target {
 public:
  std::string name() const override { return "bare"; }
  int threads() const override { return 1; }
  std::vector<KernelCandidate> candidates(const ir::Op&, const EpilogueOps&) const override {
    return {};
  }
  double generated_seconds(const ir::Op&) const override { return 0; }
  int64_t scratch_bytes(const ir::Op&, int64_t) const override { return 0; }
};

int kernels_of(const std::string& text, Options options) {
  const std::unique_ptr<ir::Program> program = ir::parse(text, "test.fir");
  std::vector<Pass> passes;
  for (const Pass& pass : pipeline(options)) {
    passes.push_back(pass);
    if (pass.name == "outline") break;
  }
  run_passes(*program, passes, options, Bare());
  int kernels = 0;
  for (const auto& op : program->main().ops) {
    EXPECT_FALSE(std::holds_alternative<Map>(*def_of(*op).lower)) << op->name;
    EXPECT_FALSE(std::holds_alternative<Reduce>(*def_of(*op).lower)) << op->name;
    kernels += op->name == "fused" ? 1 : 0;
  }
  if (::testing::Test::HasFailure() || getenv("FLUID_SHOW") != nullptr) {
    std::puts(ir::print(*program).c_str());
  }
  return kernels;
}

const char* const kLinearRegression = R"(program @linear {
  %x = data "x" : f32[?, 2]
  %y = data "y" : f32[?, 1]
  %w = param "w" : f32[2, 1]
  %b = param "b" : f32[1]
  %p = matmul(%x, %w) : f32[?, 1]
  %q = add(%p, %b) : f32[?, 1]
  %e = mse_loss(%q, %y) : f32[?, 1]
  %loss = mean(%e) : f32[]
  train(%loss) {optimizer = "OPTIMIZER", lr = 0.1}
  output "loss" = %loss
}
)";

std::string linear_regression(const std::string& optimizer) {
  std::string text = kLinearRegression;
  return text.replace(text.find("OPTIMIZER"), 9, optimizer);
}

TEST(Fuse, LinearRegressionStepIsOneKernel) {
  EXPECT_EQ(kernels_of(linear_regression("sgd"), {.batch = 1000000}), 1);
  EXPECT_EQ(kernels_of(linear_regression("adam"), {.batch = 1000000}), 1);
}

TEST(Fuse, AloneWhenToldSo) {
  EXPECT_GT(kernels_of(linear_regression("sgd"), {.batch = 64, .fuse = false}), 5);
}

TEST(Fuse, SoftmaxCrossEntropyForwardAndBackwardIsOneKernel) {
  const int kernels = kernels_of(R"(program @classify {
  %x = param "logits" : f32[100, 10]
  %l = data "label" : i64[100]
  %e = softmax_cross_entropy(%x, %l) : f32[100]
  %loss = mean(%e) : f32[]
  train(%loss) {optimizer = "sgd", lr = 0.1}
  output "loss" = %loss
}
)",
                                 {.batch = 100});
  EXPECT_LE(kernels, 2);  // and the update
}

/// A residual classifier of `layers` layers of 64 units, trained with Adam.
std::string residual(int layers) {
  std::string text =
      "program @deep {\n  %x = data \"x\" : f32[?, 64]\n  %label = data \"label\" : i64[?]\n"
      "  %h0 = relu(%x) : f32[?, 64]\n";
  for (int layer = 0; layer < layers; ++layer) {
    const std::string i = std::to_string(layer), next = std::to_string(layer + 1);
    text += "  %w" + i + " = param \"w" + i + "\" : f32[64, 64]\n";
    text += "  %b" + i + " = param \"b" + i + "\" : f32[64]\n";
    text += "  %m" + i + " = matmul(%h" + i + ", %w" + i + ") : f32[?, 64]\n";
    text += "  %a" + i + " = add(%m" + i + ", %b" + i + ") : f32[?, 64]\n";
    text += "  %r" + i + " = relu(%a" + i + ") : f32[?, 64]\n";
    text += "  %h" + next + " = add(%r" + i + ", %h" + i + ") : f32[?, 64]\n";
  }
  return text + "  %e = softmax_cross_entropy(%h" + std::to_string(layers) +
         ", %label) : f32[?]\n  %loss = mean(%e) : f32[]\n"
         "  train(%loss) {optimizer = \"adam\", lr = 0.001}\n  output \"loss\" = %loss\n}\n";
}

/// `layers` small layers without biases, trained with plain gradient descent.
std::string chain(int layers) {
  std::string text = "program @deep {\n  %r0 = data \"x\" : f32[?, 8]\n";
  for (int layer = 0; layer < layers; ++layer) {
    const std::string i = std::to_string(layer), next = std::to_string(layer + 1);
    text += "  %w" + i + " = param \"w" + i + "\" : f32[8, 8]\n";
    text += "  %m" + i + " = matmul(%r" + i + ", %w" + i + ") : f32[?, 8]\n";
    text += "  %r" + next + " = relu(%m" + i + ") : f32[?, 8]\n";
  }
  return text + "  %loss = mean(%r" + std::to_string(layers) +
         ") : f32[]\n  train(%loss) {optimizer = \"sgd\", lr = 0.1}\n"
         "  output \"loss\" = %loss\n}\n";
}

/// Processor seconds that the passes take, the least of `runs`.
double seconds_of(const std::string& text, const Options& options, int runs) {
  double least = HUGE_VAL;
  for (int run = 0; run < runs; ++run) {
    const std::unique_ptr<ir::Program> program = ir::parse(text, "deep.fir");
    const std::clock_t start = std::clock();
    run_passes(*program, pipeline(options), options, Bare());
    least = std::min(least, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return least;
}

TEST(Compile, ResidualNetTakesSeconds) {
  // half a second without sanitizers; cubic work took minutes
  EXPECT_LT(seconds_of(residual(100), {.batch = 100}, 1), 15);
}

TEST(Compile, TimeGrowsAboutLinearlyWithDepth) {
  const Options options{.batch = 16};
  const double shallow = seconds_of(chain(75), options, 3);
  EXPECT_LT(seconds_of(chain(300), options, 3), 8 * shallow);
}

}  // namespace
}  // namespace fluid::fuse_test
