// Which kernels of GPU libraries GpuTarget offers. No kernel runs.

#include "executor/gpu/gpu_target.h"

#include <gtest/gtest.h>

#include "executor/gpu_libraries/gpu_library_call.h"
#include "frontend/program.h"
#include "ops/functions.h"
#include "ops/nn/conv.h"
#include "ops/operators.h"
#include "ops/record.h"
#include "passes/layouts.h"

namespace fluid::gpu_target_test {
namespace {

constexpr FluidGpuDescription kGpu = {.major = 9,
                                      .multiprocessors = 132,
                                      .memory_bus_bits = 5120,
                                      .clock_khz = 1'980'000,
                                      .memory_clock_khz = 2'619'000};

/// A product of matrices, and the ops after it.
class MatmulChain {
 public:
  explicit MatmulChain(Shape a, Shape b, MatmulAttrs attrs = {}, DType dtype = f32)
      : net_("matmul_chain"),
        a_(net_.data("a", a, dtype)),
        b_(net_.data("b", b, dtype)),
        y_(matmul(a_, b_, attrs)),
        dtype_(dtype) {}

  MatmulChain& then_bias() { return then(y_ + net_.data("bias", {y_.shape().back()}, dtype_)); }
  MatmulChain& then_sum() { return then(y_ + net_.data("c", y_.shape(), dtype_)); }
  MatmulChain& then_relu() { return then(relu(y_)); }

  std::vector<KernelCandidate> candidates(const GpuTarget& target = GpuTarget(kGpu)) const {
    return target.candidates(head(), chain_);
  }
  Value value() const { return y_; }
  std::optional<FluidGpuMatmul> product() const { return gpu_matmul(head(), chain_, 1); }

 private:
  MatmulChain& then(Value next) {
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
  EpilogueOps chain_;
};

TEST(GpuTarget, AcceptsProductsWithWhatFollowsThem) {
  const Shape a = {64, 32}, b = {32, 16};
  EXPECT_EQ(MatmulChain(a, b).candidates().size(), 1U);
  EXPECT_EQ(MatmulChain(a, b).candidates().at(0).kernel, "cublaslt.matmul");
  const FluidGpuMatmul p = *MatmulChain(a, b).then_bias().then_relu().product();
  EXPECT_EQ(std::tuple(p.m, p.n, p.k, p.count), std::tuple(64, 16, 32, 1));
  EXPECT_EQ(std::tuple(p.a_row_stride, p.b_row_stride, p.result_row_stride),
            std::tuple(32, 16, 16));
  EXPECT_TRUE(p.bias && p.relu && !p.has_addend && !p.tf32);
  EXPECT_TRUE(MatmulChain(a, b).then_relu().product()->relu);
  EXPECT_TRUE(MatmulChain(a, b).then_sum().product()->has_addend);
  EXPECT_FALSE(MatmulChain(a, b).then_sum().then_relu().product());
  EXPECT_FALSE(MatmulChain(a, b).then_bias().then_sum().product());
  EXPECT_FALSE(MatmulChain(a, b).then_relu().then_bias().product());
}

TEST(GpuTarget, AcceptsTranspositionsAndBatches) {
  const FluidGpuMatmul both =
      *MatmulChain({32, 64}, {16, 32}, {.transpose_a = true, .transpose_b = true}).product();
  EXPECT_EQ(std::tuple(both.m, both.n, both.k), std::tuple(64, 16, 32));
  EXPECT_EQ(std::tuple(both.a_row_stride, both.b_row_stride), std::tuple(64, 32));
  const FluidGpuMatmul many = *MatmulChain({2, 3, 8, 4}, {2, 3, 4, 5}).product();
  EXPECT_EQ(std::tuple(many.count, many.m, many.a_matrix_stride, many.b_matrix_stride,
                       many.result_matrix_stride),
            std::tuple(6, 8, 32, 20, 40));
  const FluidGpuMatmul folded = *MatmulChain({2, 3, 8, 4}, {4, 5}).product();
  EXPECT_EQ(std::tuple(folded.count, folded.m), std::tuple(1, 48));
  EXPECT_FALSE(MatmulChain({2, 8, 4}, {8, 5}, {.transpose_a = true}).product()) << "b is broadcast";
  EXPECT_FALSE(MatmulChain({70000, 8, 4}, {70000, 4, 5}).product()) << "too many";
  EXPECT_FALSE(MatmulChain({0, 4}, {4, 5}).product()) << "nothing";
}

TEST(GpuTarget, AcceptsEveryFloat) {
  const Shape a = {64, 32}, b = {32, 16};
  EXPECT_EQ(MatmulChain(a, b, {}, f64).product()->operands, fluid_gpu_f64);
  EXPECT_EQ(MatmulChain(a, b, {}, f16).product()->operands, fluid_gpu_f16);
  EXPECT_EQ(MatmulChain(a, b, {}, bf16).then_bias().product()->operands, fluid_gpu_bf16);
  EXPECT_TRUE(MatmulChain(a, b, {}, f64).then_sum().product());
  EXPECT_FALSE(MatmulChain(a, b, {}, f64).then_bias().product());
}

TEST(GpuTarget, WantsItsWorkspaceAndSaysWhatBecomesOfNan) {
  const KernelCandidate bias = MatmulChain({64, 32}, {32, 16}).then_bias().candidates().at(0);
  EXPECT_EQ(bias.workspace, planned_workspace(4 << 20)) << "of a small product";
  EXPECT_TRUE(bias.propagates_nan && !bias.overwrites_addend && !bias.mixes_samples);
  EXPECT_FALSE(MatmulChain({64, 32}, {32, 16}).then_relu().candidates().at(0).propagates_nan);
  const GpuTarget narrow(kGpu, {.workspace = 1 << 20});
  const KernelCandidate sum = MatmulChain({64, 32}, {32, 16}).then_sum().candidates(narrow).at(0);
  EXPECT_EQ(sum.workspace, planned_workspace(1 << 16)) << "in proportion";
  const KernelCandidate large = MatmulChain({8192, 8192}, {8192, 8192}).candidates().at(0);
  EXPECT_EQ(large.workspace, planned_workspace(kGpuWorkspace / 2));
  EXPECT_TRUE(sum.overwrites_addend);
}

/// A convolution or one of its gradients, and the ops after it.
class Convolved {
 public:
  struct Layer {
    Shape x = {8, 16, 14, 14}, w = {32, 16, 3, 3};
    DType dtype = f32;
    bool last = false;  ///< channels of images and maps
  };

  explicit Convolved(const Layer& layer, Conv2dAttrs attrs = {})
      : net_("convolved"), last_(layer.last) {
    const Value x = data("x", layer.x, layer.dtype), w = data("w", layer.w, layer.dtype);
    laid_out(x);
    heads_[0] = laid_out(conv2d(x, w, attrs));
    const Value dy = laid_out(data("dy", heads_[0].shape(), layer.dtype));
    const auto made = [&](const char* name, const Values& operands, const char* attr, Value like) {
      Attrs all = conv_attrs_of(heads_[0].op()->attrs);
      all.set(attr, Type{layer.dtype, like.shape(), {}});
      return record(*x.op()->graph(), name, operands, all, Loc())[0];
    };
    heads_[1] = laid_out(made("conv2d_grad_input", {dy, w}, "input", x));
    heads_[2] = made("conv2d_grad_filter", {x, dy}, "filter", w);
  }

  Convolved& then_bias() { return then(laid_out(last_of(0) + data("b", bias_shape(), dtype(0)))); }
  Convolved& then_relu() { return then(laid_out(relu(last_of(0)))); }
  /// After head `which`.
  Convolved& then_sum(int which) {
    const Value c = laid_out(data("c", heads_[which].shape(), dtype(which)));
    return then(laid_out(last_of(which) + c));
  }

  std::optional<FluidGpuConvolution> task(int which = 0) const {
    return gpu_convolution(*heads_[which].op(), chain_, 1);
  }
  std::vector<KernelCandidate> candidates(int which = 0,
                                          const GpuTarget& target = GpuTarget(kGpu)) const {
    return target.candidates(*heads_[which].op(), chain_);
  }
  double generated(int which = 0) const {
    return GpuTarget(kGpu).generated_seconds(*heads_[which].op());
  }

 private:
  Value data(const char* name, const Shape& shape, DType dtype) {
    return net_.data(name, shape, dtype);
  }
  Shape bias_shape() const { return {heads_[0].shape()[1], 1, 1}; }
  DType dtype(int which) const { return heads_[which].dtype(); }
  Value last_of(int which) const {
    return chain_.empty() ? heads_[which] : Value(const_cast<ir::Op*>(chain_.back()), 0);
  }
  Value laid_out(Value v) const {
    if (last_) v.op()->results[0].type.layout = channels_last();
    return v;
  }
  Convolved& then(Value next) {
    chain_.push_back(next.op());
    return *this;
  }

  Program net_;
  bool last_;
  Value heads_[3];
  EpilogueOps chain_;
};

TEST(GpuTarget, AcceptsConvolutionsAndTheirGradients) {
  const Convolved made({}, {.stride = {2}, .padding = {1}, .dilation = {2}});
  constexpr const char* kKernels[] = {"cudnn.conv2d", "cudnn.conv2d_grad_input",
                                      "cudnn.conv2d_grad_filter"};
  for (int which = 0; which < 3; ++which) {
    const FluidGpuConvolution c = *made.task(which);
    EXPECT_EQ(c.direction, static_cast<FluidGpuDirection>(which));
    EXPECT_EQ(std::tuple(c.images, c.channels, c.height, c.width), std::tuple(8, 16, 14, 14));
    EXPECT_EQ(std::tuple(c.filters, c.filter_height, c.filter_width), std::tuple(32, 3, 3));
    EXPECT_EQ(std::tuple(c.map_height, c.map_width), std::tuple(6, 6));
    EXPECT_EQ(std::tuple(c.stride[1], c.dilation[1], c.padding[1]), std::tuple(2, 2, 1));
    EXPECT_FALSE(c.channels_last || c.has_addend || c.bias || c.relu || c.tf32);
    ASSERT_EQ(made.candidates(which).size(), 1U);
    EXPECT_EQ(made.candidates(which)[0].kernel, kKernels[which]);
  }
  const Convolved grouped({.w = {32, 4, 3, 3}}, {.groups = 4});
  EXPECT_EQ(grouped.task(2)->groups, 4);
  EXPECT_FALSE(Convolved({.dtype = f64}).task());
  EXPECT_FALSE(Convolved({}, {.padding = {1, 1, 0, 0}}).task()) << "other zeros on either side";
  EXPECT_FALSE(Convolved({.x = {0, 16, 14, 14}}).task()) << "nothing";
}

TEST(GpuTarget, AcceptsWhatFollowsConvolutions) {
  EXPECT_TRUE(Convolved({}).then_bias().task()->bias);
  EXPECT_TRUE(Convolved({}).then_bias().candidates()[0].propagates_nan);
  const Convolved clipped = std::move(Convolved({}).then_bias().then_relu());
  EXPECT_TRUE(clipped.task()->bias && clipped.task()->relu);
  EXPECT_FALSE(clipped.candidates()[0].propagates_nan);
  EXPECT_FALSE(Convolved({}).then_relu().task()) << "there is no engine for it but by compiling";
  for (const int which : {0, 1, 2}) {
    const Convolved summed = std::move(Convolved({}).then_sum(which));
    EXPECT_TRUE(summed.task(which)->has_addend);
    EXPECT_TRUE(summed.candidates(which)[0].overwrites_addend);
  }
}

/// Filters always have the plain layout.
TEST(GpuTarget, AcceptsConvolutionsWithChannelsLast) {
  for (const int which : {0, 1, 2}) {
    const Convolved made({.dtype = bf16, .last = true});
    EXPECT_TRUE(made.task(which)->channels_last);
    const KernelCandidate candidate = made.candidates(which).at(0);
    const std::optional<Layout> last = channels_last(), plain;
    EXPECT_EQ(candidate.operands[0], last);
    EXPECT_EQ(candidate.operands[1], which == 2 ? last : plain);
    EXPECT_EQ(candidate.results[0], which == 2 ? plain : last);
  }
  EXPECT_TRUE(Convolved({.dtype = bf16, .last = true}).then_bias().task()->bias);
  const Convolved either({.x = {8, 1, 14, 14}, .w = {1, 1, 3, 3}, .dtype = f16});
  EXPECT_TRUE(either.task()->channels_last) << "the same bytes";
}

/// Halves take less time with their channels last, f32 more.
TEST(GpuTarget, LaysOutHalvesAlone) {
  const auto seconds = [](DType dtype, bool last) {
    return Convolved({.x = {64, 64, 27, 27}, .w = {192, 64, 5, 5}, .dtype = dtype, .last = last})
        .candidates()
        .at(0)
        .seconds;
  };
  EXPECT_LT(seconds(bf16, true), seconds(bf16, false));
  EXPECT_LT(seconds(f32, false), seconds(f32, true));
}

TEST(GpuTarget, PlansForWhatKernelsOfConvolutionsTurn) {
  constexpr int64_t kMiB = 1 << 20;
  constexpr int64_t kImages = 8 * 16 * 14 * 14, kFilters = 32 * 16 * 3 * 3,
                    kMaps = 8 * 32 * 12 * 12;
  const auto workspace = [](const Convolved& made, int which,
                            const GpuLibraryOptions& libraries = {}) {
    return made.candidates(which, GpuTarget(kGpu, libraries)).at(0).workspace -
           planned_workspace(0);
  };
  const Convolved exact({}), half({.dtype = f16, .last = true}), plain({.dtype = f16});
  const int64_t all = kImages + kFilters + kMaps;
  EXPECT_EQ(workspace(exact, 0), kMiB);
  EXPECT_EQ(workspace(exact, 1), kMiB);
  EXPECT_EQ(workspace(exact, 2), 4 * all + 2 * kMiB);
  EXPECT_EQ(workspace(exact, 0, {.tf32 = true}), 4 * all + kMiB);
  EXPECT_EQ(workspace(half, 0), 2 * kFilters + kMiB);
  EXPECT_EQ(workspace(half, 2), 2 * kFilters + 2 * kMiB);
  EXPECT_EQ(workspace(plain, 1), 2 * all + 4 * kImages + kMiB) << "sums in f32";
  EXPECT_EQ(workspace(exact, 0, {.workspace = 4 * kGpuWorkspace}), 4 * kMiB)
      << "more to choose from";
  EXPECT_EQ(workspace(exact, 2, {.workspace = 1000}), 1000);
  const Convolved first({.x = {8, 3, 14, 14}, .w = {32, 3, 3, 3}, .dtype = bf16, .last = true});
  EXPECT_EQ(workspace(first, 0), 2 * (8 * 8 * 14 * 14 + 32 * 8 * 3 * 3) + kMiB) << "padded";
}

TEST(GpuTarget, LeavesSmallConvolutionsToGeneratedCode) {
  const Convolved small({.x = {1, 1, 28, 28}, .w = {8, 1, 3, 3}});
  EXPECT_GT(small.candidates()[0].seconds, small.generated());
  const Convolved large({.x = {64, 64, 27, 27}, .w = {192, 64, 5, 5}});
  EXPECT_LT(large.candidates()[0].seconds, large.generated());
}

/// On tensor cores, if the tensors have to be turned for them.
TEST(GpuTarget, Tf32IsFasterWhereItIsAllowed) {
  const Convolved made({.x = {64, 64, 27, 27}, .w = {192, 64, 5, 5}});
  const GpuTarget exact(kGpu), rounded(kGpu, {.tf32 = true});
  EXPECT_LT(made.candidates(0, rounded)[0].seconds, made.candidates(0, exact)[0].seconds / 3);
  EXPECT_EQ(rounded.f32_matmul_rate(), rounded.half_matmul_rate() / 2);
  EXPECT_EQ(exact.f32_matmul_rate(), 2 * exact.f64_rate()) << "f64 is half as fast there";
}

/// Tensor cores take eight channels, or filters, for three.
TEST(GpuTarget, EmptyLanesTakeTime) {
  const auto seconds = [](int64_t channels, int64_t filters, DType dtype) {
    return Convolved({.x = {64, channels, 56, 56},
                      .w = {filters, channels, 11, 11},
                      .dtype = dtype,
                      .last = is_half_precision(dtype)})
        .candidates()
        .at(0)
        .seconds;
  };
  EXPECT_GT(seconds(3, 1024, bf16), seconds(8, 1024, bf16)) << "and they are copied";
  EXPECT_GT(seconds(1024, 3, bf16), seconds(1024, 8, bf16));
  EXPECT_LT(seconds(3, 1024, f32), seconds(8, 1024, f32) / 2);
}

TEST(GpuTarget, AnAddendIsRead) {
  constexpr int64_t kRows = 8192;
  const auto made = [] { return MatmulChain({kRows, 8}, {8, kRows}); };
  const double alone = made().candidates().at(0).seconds;
  EXPECT_NEAR(made().then_sum().candidates().at(0).seconds - alone,
              4.0 * kRows * kRows / GpuTarget(kGpu).memory_rate(), 1e-9);
  EXPECT_EQ(made().then_relu().candidates().at(0).seconds, alone);
}

/// The library's kernel takes a moment longer to begin.
TEST(GpuTarget, LeavesSmallProductsToGeneratedCode) {
  const auto library_wins = [](int64_t n, DType dtype, const GpuTarget& target) {
    const MatmulChain matmul_chain({n, n}, {n, n}, {}, dtype);
    const double generated = target.generated_seconds(*matmul_chain.value().op());
    return matmul_chain.candidates(target).at(0).seconds < generated;
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

/// As the library would be asked for it: with TF32 where that is allowed.
TEST(GpuTarget, OffersNoRejectedKernel) {
  const MatmulChain product({64, 32}, {32, 16});
  for (const bool tf32 : {false, true}) {
    const GpuLibraryOptions libraries{.tf32 = tf32};
    const auto refusal = [&](const GpuTask& task) {
      const bool same = (std::get<FluidGpuMatmul>(task).tf32 != 0) == tf32;
      return same ? std::optional<std::string>("no engine") : std::nullopt;
    };
    const GpuTarget refused(kGpu, libraries, refusal);
    EXPECT_TRUE(product.candidates(refused).empty());
    EXPECT_EQ(
        refused.rejection_messages(),
        std::vector<std::string>{"cublaslt.matmul cannot compute f32 64 x 16 of 32" +
                                 std::string(tf32 ? ", TF32" : "") +
                                 " with a workspace of 4.00 MiB (no engine): code is generated"});
    EXPECT_EQ(product.candidates(GpuTarget(kGpu, {.tf32 = !tf32}, refusal)).size(), 1U);
  }
}

}  // namespace
}  // namespace fluid::gpu_target_test
