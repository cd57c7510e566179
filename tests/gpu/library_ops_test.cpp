// What a GPU's libraries compute of ops, with what follows these, is what they are defined to be.

#include <cstring>

#include "executor/gpu/gpu.h"
#include "executor/gpu/gpu_convolution.h"
#include "executor/gpu/gpu_product.h"
#include "executor/gpu/gpu_target.h"
#include "ops/operators.h"
#include "passes/layouts.h"
#include "tests/gpu/library_test.h"
#include "tests/support/library_program.h"

namespace fluid {
namespace {

using fluid::testing::ConvolutionCase;
using fluid::testing::LibraryProgram;

constexpr int64_t kWorkspace = 1 << 20;

class GpuLibraryOps : public GpuLibraryTest {
 protected:
  /// Computes a program that the library claims, whose `images` are all values that have two
  /// layouts.
  void expect_computed(LibraryProgram& p, const Values& images, bool last) {
    p.graph.outputs.assign(1, {"y", p.result()});
    const Tensor expected = testing::interpret(p.graph, p.feeds).outputs.at("y");
    const auto lay_out = [&](const std::optional<Layout>& layout) {
      for (const Value& v : images) v.op()->results[0].type.layout = layout;
    };
    const auto layout = last ? std::optional(channels_last()) : std::nullopt;
    lay_out(layout);
    const GpuTarget target(describe_gpu(gpu_backend(), 0), {kWorkspace});
    const std::vector<Claim> offered = target.claims(*p.chain[0], p.epilogue());
    ASSERT_EQ(offered.size(), 1U);
    Claim claim = offered.front();
    if (claim.adds_in_place) claim.operands.push_back(claim.results[0]);
    const auto make = [&](std::string_view, const ir::Op&, const Chain&, int64_t) {
      lay_out(layout);
      return routine(p, claim.workspace);
    };
    testing::expect_near(testing::run_claim(p, make, claim), expected,
                         testing::library_tolerance(p.dtype));
    lay_out(std::nullopt);
  }

  /// By every direction, layout and epilogue.
  void expect_convolved(DType dtype, const ConvolutionCase& c, bool last) {
    const Conv2dAttrs& a = c.attrs;
    for (const int followed : {0, 1, 2, 3}) {  // by nothing, a bias, that and a relu, or a sum
      LibraryProgram p{.dtype = dtype};
      const Value x = p.feed(c.x), y = conv2d(x, p.feed(c.w), a);
      Values images = {x, y};
      const auto then = [&](Value v) {
        p.then(v);
        images.push_back(v);
        return v;
      };
      then(y);
      if (followed == 3) {
        images.push_back(p.feed(y.shape()));
        then(y + images.back());
      } else if (followed > 0) {
        const Value sum = then(y + reshape(p.feed({c.w[0]}), Shape{c.w[0], 1, 1}));
        if (followed == 2) then(relu(sum));
      }
      expect_computed(p, images, last);
    }
    const Shape maps = maps_of(c);
    LibraryProgram for_input{.dtype = dtype};
    const Value dy = for_input.feed(maps);
    const Value dx = conv2d_grad_input(
        dy, for_input.feed(c.w), {a.stride, a.padding, a.dilation, a.groups, Type{dtype, c.x, {}}});
    for_input.then(dx);
    expect_computed(for_input, {dy, dx}, last);
    LibraryProgram for_filter{.dtype = dtype};
    const Value x = for_filter.feed(c.x), gradient = for_filter.feed(maps);
    for_filter.then(conv2d_grad_filter(
        x, gradient, {a.stride, a.padding, a.dilation, a.groups, Type{dtype, c.w, {}}}));
    expect_computed(for_filter, {x, gradient}, last);
  }

 private:
  static Shape maps_of(const ConvolutionCase& c) {
    LibraryProgram p;
    return conv2d(p.feed(c.x), p.feed(c.w), c.attrs).shape();
  }

  /// Brings the factors to the GPU and the result back.
  LibraryRoutine routine(const LibraryProgram& p, int64_t planned) {
    const auto product = gpu_product(*p.chain[0], p.epilogue(), 1);
    const auto convolution = gpu_convolution(*p.chain[0], p.epilogue(), 1);
    const GpuTask task = product ? GpuTask(*product) : GpuTask(convolution.value());
    std::vector<int64_t> bytes;
    for (const Value& v : p.inputs()) bytes.push_back(v.type().bytes_at(1));
    bytes.push_back(p.result().type().bytes_at(1));
    return {[=, this](void* const* buffers, void*) {
              return [=, this] { compute(task, bytes, buffers); };
            },
            planned};
  }

  void compute(const GpuTask& task, const std::vector<int64_t>& bytes, void* const* buffers) {
    std::vector<GpuMemory> here, there;
    for (size_t i = 0; i < bytes.size(); ++i) {
      here.push_back(gpu_->allocate_host(bytes[i]));
      there.push_back(gpu_->allocate(bytes[i]));
      std::memcpy(here[i].data(), buffers[i], static_cast<size_t>(bytes[i]));
      gpu_->copy(stream_, there[i].data(), here[i].data(), bytes[i]);
    }
    const GpuMemory workspace = gpu_->allocate(kWorkspace);
    const bool adds = std::visit([](const auto& t) { return t.adds != 0; }, task);
    const bool bias = std::visit([](const auto& t) { return t.bias != 0; }, task);
    const size_t last = bytes.size() - 1;
    const GpuMultiplier multiplier =
        gpu_->multiplier(task, gpu_->choices(task, kWorkspace, 1).at(0));
    gpu_->multiply(stream_, multiplier,
                   {.a = there[0].data(),
                    .b = there[1].data(),
                    .addend = adds ? there[2].data() : nullptr,
                    .bias = bias ? there[2].data() : nullptr,
                    .result = there[last].data(),
                    .workspace = workspace.data()});
    gpu_->copy(stream_, here[last].data(), there[last].data(), bytes[last]);
    gpu_->synchronize(stream_);
    std::memcpy(buffers[last], here[last].data(), static_cast<size_t>(bytes[last]));
  }
};

TEST_F(GpuLibraryOps, ConvolutionsOfAllKinds) {
  for (const DType dtype : {f32, f16, bf16}) {
    for (const ConvolutionCase& c : testing::convolution_cases()) {
      for (const bool last : {false, true}) {
        SCOPED_TRACE(::testing::Message() << name_of(dtype) << ' ' << c.x.str() << " and "
                                          << c.w.str() << (last ? ", channels last" : ""));
        expect_convolved(dtype, c, last);
      }
    }
  }
}

TEST_F(GpuLibraryOps, ProductsWithWhatFollows) {
  for (const DType dtype : {f32, f16, bf16}) {
    for (const int followed : {0, 1, 2, 3}) {
      SCOPED_TRACE(::testing::Message() << name_of(dtype) << ' ' << followed);
      LibraryProgram p{.dtype = dtype};
      const Value y = matmul(p.feed({19, 33}), p.feed({33, 24}));
      p.then(y);
      if (followed == 3) {
        p.then(y + p.feed({19, 24}));
      } else if (followed > 0) {
        const Value sum = y + p.feed({24});
        p.then(sum);
        if (followed == 2) p.then(relu(sum));
      }
      expect_computed(p, {}, false);
    }
  }
}

}  // namespace
}  // namespace fluid
