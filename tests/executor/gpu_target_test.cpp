// Which ops a GPU's library claims. Nothing runs.

#include "executor/gpu/gpu_target.h"

#include <gtest/gtest.h>

#include "executor/gpu/gpu_product.h"
#include "frontend/program.h"
#include "ops/functions.h"
#include "ops/operators.h"

namespace fluid {
namespace {

constexpr FluidGpuDescription kGpu = {.major = 9,
                                      .multiprocessors = 132,
                                      .memory_bus_bits = 5120,
                                      .clock_khz = 1'980'000,
                                      .memory_clock_khz = 2'619'000};

/// A product of matrices, and the ops after it.
class Claimed {
 public:
  explicit Claimed(Shape a, Shape b, MatmulAttrs attrs = {}, DType dtype = f32)
      : net_("claimed"),
        a_(net_.data("a", a, dtype)),
        b_(net_.data("b", b, dtype)),
        y_(matmul(a_, b_, attrs)),
        dtype_(dtype) {}

  Claimed& then_bias() { return then(y_ + net_.data("bias", {y_.shape().back()}, dtype_)); }
  Claimed& then_sum() { return then(y_ + net_.data("c", y_.shape(), dtype_)); }
  Claimed& then_relu() { return then(relu(y_)); }

  std::vector<Claim> claims(const GpuTarget& target = GpuTarget(kGpu)) const {
    return target.claims(head(), chain_);
  }
  Value value() const { return y_; }
  std::optional<FluidGpuProduct> product() const { return gpu_product(head(), chain_, 1); }

 private:
  Claimed& then(Value next) {
    y_ = next;
    chain_.push_back(next.op());
    return *this;
  }
  const ir::Op& head() const {
    return chain_.empty() ? *y_.op() : *chain_.front()->operands[0].op();
  }

  Program net_;
  Value a_, b_, y_;
  DType dtype_;
  Chain chain_;
};

TEST(GpuTarget, ClaimsProductsWithWhatFollowsThem) {
  const Shape a = {64, 32}, b = {32, 16};
  EXPECT_EQ(Claimed(a, b).claims().size(), 1U);
  EXPECT_EQ(Claimed(a, b).claims().at(0).kernel, "cublaslt.matmul");
  const FluidGpuProduct p = *Claimed(a, b).then_bias().then_relu().product();
  EXPECT_EQ(std::tuple(p.m, p.n, p.k, p.count), std::tuple(64, 16, 32, 1));
  EXPECT_EQ(std::tuple(p.a_row, p.b_row, p.result_row), std::tuple(32, 16, 16));
  EXPECT_TRUE(p.bias && p.relu && !p.adds && !p.tf32);
  EXPECT_TRUE(Claimed(a, b).then_relu().product()->relu);
  EXPECT_TRUE(Claimed(a, b).then_sum().product()->adds);
  EXPECT_FALSE(Claimed(a, b).then_sum().then_relu().product());
  EXPECT_FALSE(Claimed(a, b).then_bias().then_sum().product());
  EXPECT_FALSE(Claimed(a, b).then_relu().then_bias().product());
}

TEST(GpuTarget, ClaimsTranspositionsAndBatches) {
  const FluidGpuProduct both =
      *Claimed({32, 64}, {16, 32}, {.transpose_a = true, .transpose_b = true}).product();
  EXPECT_EQ(std::tuple(both.m, both.n, both.k), std::tuple(64, 16, 32));
  EXPECT_EQ(std::tuple(both.a_row, both.b_row), std::tuple(64, 32));
  const FluidGpuProduct many = *Claimed({2, 3, 8, 4}, {2, 3, 4, 5}).product();
  EXPECT_EQ(std::tuple(many.count, many.m, many.a_matrix, many.b_matrix, many.result_matrix),
            std::tuple(6, 8, 32, 20, 40));
  const FluidGpuProduct folded = *Claimed({2, 3, 8, 4}, {4, 5}).product();
  EXPECT_EQ(std::tuple(folded.count, folded.m), std::tuple(1, 48));
  EXPECT_FALSE(Claimed({2, 8, 4}, {8, 5}, {.transpose_a = true}).product()) << "b is broadcast";
  EXPECT_FALSE(Claimed({70000, 8, 4}, {70000, 4, 5}).product()) << "too many";
  EXPECT_FALSE(Claimed({0, 4}, {4, 5}).product()) << "nothing";
}

TEST(GpuTarget, ClaimsEveryFloat) {
  const Shape a = {64, 32}, b = {32, 16};
  EXPECT_EQ(Claimed(a, b, {}, f64).product()->operands, fluid_gpu_f64);
  EXPECT_EQ(Claimed(a, b, {}, f16).product()->operands, fluid_gpu_f16);
  EXPECT_EQ(Claimed(a, b, {}, bf16).then_bias().product()->operands, fluid_gpu_bf16);
  EXPECT_TRUE(Claimed(a, b, {}, f64).then_sum().product());
  EXPECT_FALSE(Claimed(a, b, {}, f64).then_bias().product());
}

TEST(GpuTarget, WantsItsWorkspaceAndSaysWhatBecomesOfNan) {
  const Claim bias = Claimed({64, 32}, {32, 16}).then_bias().claims().at(0);
  EXPECT_EQ(bias.workspace, kGpuWorkspace);
  EXPECT_TRUE(bias.keeps_nan && !bias.adds_in_place && !bias.mixes_samples);
  EXPECT_FALSE(Claimed({64, 32}, {32, 16}).then_relu().claims().at(0).keeps_nan);
  const GpuTarget narrow(kGpu, 1 << 20);
  const Claim sum = Claimed({64, 32}, {32, 16}).then_sum().claims(narrow).at(0);
  EXPECT_EQ(sum.workspace, 1 << 20);
  EXPECT_TRUE(sum.adds_in_place);
}

/// The library's kernel takes a moment longer to begin.
TEST(GpuTarget, LeavesSmallProductsToGeneratedCode) {
  const auto library_wins = [](int64_t n, DType dtype, const GpuTarget& target) {
    const Claimed claimed({n, n}, {n, n}, {}, dtype);
    const double generated = target.generated_seconds(*claimed.value().op());
    return claimed.claims(target).at(0).seconds < generated;
  };
  for (const DType dtype : {f32, f16}) {
    const GpuTarget target(kGpu);
    EXPECT_FALSE(library_wins(64, dtype, target));
    EXPECT_TRUE(library_wins(1024, dtype, target));
    const GpuTarget unknown(FluidGpuDescription{.major = 9});  // the driver does not tell
    EXPECT_FALSE(library_wins(64, dtype, unknown));
    EXPECT_TRUE(library_wins(1024, dtype, unknown));
  }
}

}  // namespace
}  // namespace fluid
