// How many kernels are left of small programs, and that they compute what the ops did.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <set>

#include "ir/parse.h"
#include "ir/print.h"
#include "ops/optim/optimizer.h"
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

/// `text` after the passes up to outline.
std::unique_ptr<ir::Program> outlined(const std::string& text, const Options& options) {
  std::unique_ptr<ir::Program> program = ir::parse(text, "test.fir");
  std::vector<Pass> passes;
  for (const Pass& pass : pipeline(options)) {
    passes.push_back(pass);
    if (pass.name == "outline") break;
  }
  run_passes(*program, passes, options, Bare());
  return program;
}

int kernels_of(const std::string& text, const Options& options) {
  const std::unique_ptr<ir::Program> program = outlined(text, options);
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

/// Kernels that update the parameters of a program.
struct UpdateWork {
  std::set<const ir::Op*> writers;  ///< kernels that write parameters
  int reads = 0;                    ///< kernels of the update that read parameter "w0"
};

/// The update of three layers. Clipping by the norm of all gradients precedes it, so that no kernel
/// both computes a gradient and updates its parameter.
UpdateWork update_work(const std::string& optimizer) {
  std::string text = residual(3);
  const std::string adam = "\"adam\"";
  text.replace(text.find(adam), adam.size(), '"' + optimizer + "\", clip_global_norm = 1.0");
  const std::unique_ptr<ir::Program> program = outlined(text, {.batch = 64});
  const ir::Graph& graph = program->main();
  const Value w0 = graph.find("param", "w0")->result();
  UpdateWork work;
  for (const auto& op : graph.ops) {
    const bool writes = op->name == "store" && graph.find("param", op->symbol) != nullptr;
    if (writes) work.writers.insert(op->operands.at(0).op());
    if (op->name != "fused" || op->role != ir::Role::optimize) continue;
    work.reads += std::ranges::find(op->operands, w0) != op->operands.end() ? 1 : 0;
  }
  return work;
}

/// One sweep updates all parameters. Optimizers that need norms of a parameter or of its change
/// read the parameter before.
TEST(Fuse, EachOptimizerUpdatesAllParametersInOneSweep) {
  const std::map<std::string, int> reads_before = {
      {"adafactor", 1},  // the mean square of the parameter
      {"lamb", 2},       // the direction; the norms of the parameter and of the direction
      {"lars", 1},       // the norm of the parameter
      {"muon", 1}};      // an operand of the op that computes the momentum
  for (const std::string& optimizer : optimizer_names()) {
    SCOPED_TRACE(optimizer);
    const UpdateWork work = update_work(optimizer);
    const auto before = reads_before.find(optimizer);
    EXPECT_EQ(work.reads, 1 + (before == reads_before.end() ? 0 : before->second));
    // Muon updates each of the three matrices apart, where its last product is made.
    EXPECT_EQ(work.writers.size(), optimizer == "muon" ? 4U : 1U);
  }
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
