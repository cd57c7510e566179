// oneDNN's kernels against the ops' own definitions, plain and in the layouts that oneDNN asks for.

#include "executor/cpu/onednn.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <new>

#include "ops/operators.h"
#include "passes/memory_plan.h"
#include "tests/support/golden.h"
#include "tests/support/interpreter.h"

namespace fluid {
namespace {

constexpr OnednnRates kRates = {.flops = 200e9, .bytes = 20e9, .vector_lanes = 16};

Tensor random_tensor(const Type& type, uint64_t stream) {
  std::vector<int64_t> shape;
  for (const Dim& d : type.shape) shape.push_back(d.size);
  Tensor t(f64, shape);
  const std::vector<double> u = testing::golden_uniform(stream, t.numel());
  for (size_t i = 0; i < u.size(); ++i) t.as<double>()[i] = u[i] - 0.5;
  return t.cast(type.dtype);
}

// Where element `index` lies in memory laid out as `type` says.
int64_t offset_of(const Type& type, std::vector<int64_t> index) {
  if (!type.layout) {
    int64_t offset = 0;
    for (size_t d = 0; d < index.size(); ++d) offset = offset * type.shape[d].size + index[d];
    return offset;
  }
  int64_t inner = 0, stride = 1;
  std::vector<int64_t> extent;
  for (const Dim& d : type.shape) extent.push_back(d.size);
  const auto& blocks = type.layout->blocks;
  for (auto b = blocks.rbegin(); b != blocks.rend(); ++b) {
    const auto axis = static_cast<size_t>(b->axis);
    inner += index[axis] % b->size * stride;
    stride *= b->size;
    index[axis] /= b->size;
    extent[axis] = (extent[axis] + b->size - 1) / b->size;
  }
  int64_t outer = 0;
  for (const int axis : type.layout->order) {
    outer = outer * extent[static_cast<size_t>(axis)] + index[static_cast<size_t>(axis)];
  }
  return outer * stride + inner;
}

// Calls visit(plain position, laid-out position) for every element.
template <class F>
void for_each_element(const Type& type, F visit) {
  const int64_t n = type.shape.numel().size;
  for (int64_t i = 0; i < n; ++i) {
    std::vector<int64_t> index(type.shape.size());
    int64_t rest = i;
    for (size_t d = index.size(); d-- > 0; rest /= type.shape[d].size) {
      index[d] = rest % type.shape[d].size;
    }
    visit(static_cast<size_t>(i), static_cast<size_t>(offset_of(type, index)));
  }
}

// As an arena: some of oneDNN's kernels store whole vectors to aligned addresses alone.
template <class T>
struct Aligned {
  using value_type = T;
  static constexpr std::align_val_t kBytes{static_cast<size_t>(kAlign)};
  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kBytes)); }
  void deallocate(T* p, size_t) { ::operator delete(p, kBytes); }
  bool operator==(const Aligned&) const = default;
};

using Bytes = std::vector<std::byte, Aligned<std::byte>>;

Bytes laid_out(const Tensor& plain, const Type& type) {
  Bytes memory(static_cast<size_t>(type.bytes_at(1)));
  const auto size = static_cast<size_t>(size_of(type.dtype));
  const auto* from = static_cast<const std::byte*>(plain.data());
  for_each_element(type, [&](size_t i, size_t at) {
    std::copy_n(from + i * size, size, memory.begin() + static_cast<ptrdiff_t>(at * size));
  });
  return memory;
}

Tensor plain_of(const Bytes& memory, const Type& type) {
  std::vector<int64_t> shape;
  for (const Dim& d : type.shape) shape.push_back(d.size);
  Tensor plain(type.dtype, shape);
  const auto size = static_cast<size_t>(size_of(type.dtype));
  auto* to = static_cast<std::byte*>(plain.data());
  for_each_element(type, [&](size_t i, size_t at) {
    std::copy_n(memory.begin() + static_cast<ptrdiff_t>(at * size), size, to + i * size);
  });
  return plain;
}

// A program of one library op and its epilogue; feeds are random.
struct Program {
  ir::Program program{"library"};
  ir::Graph& graph = program.main();
  testing::NamedTensors feeds;
  std::vector<ir::Op*> chain;  ///< the op, then its epilogue
  DType dtype = f32;

  Value feed(Shape shape) {
    const std::string name = "x" + std::to_string(feeds.size());
    const Type type = {dtype, std::move(shape), {}};
    feeds.insert({name, random_tensor(type, feeds.size())});
    return record_source(graph, "data", name, type, {}, {});
  }
  void then(Value v) { chain.push_back(v.op()); }
  Chain epilogue() const { return {chain.begin() + 1, chain.end()}; }
  // The values that the kernel reads from outside, in its order.
  Values inputs() const {
    Values values;
    for (size_t i = 0; i < chain.size(); ++i) {
      for (const Value& v : chain[i]->operands) {
        if (i == 0 || v.op() != chain[i - 1]) values.push_back(v);
      }
    }
    return values;
  }
  Value result() const { return chain.back()->result(); }
};

// The feed behind an input: a bias is a reshaped one, with the same bytes.
const Tensor& tensor_of(const Program& p, const Value& v) {
  const ir::Op* op = v.op();
  while (op->symbol.empty()) op = op->operands.at(0).op();
  return p.feeds.at(op->symbol);
}

Type with_layout(Type type, const std::optional<Layout>& layout) {
  type.layout = layout;
  return type;
}

void run_claim(Program& p, const Claim& claim, const Tensor& expected) {
  const Values inputs = p.inputs();
  std::vector<Bytes> memory;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto layout = i < claim.operands.size() ? claim.operands[i] : std::nullopt;
    Type& type = inputs[i].op()->results[0].type;
    type = with_layout(type, layout);
    memory.push_back(laid_out(tensor_of(p, inputs[i]), type));
  }
  Type& out = p.chain.back()->results[0].type;
  out = with_layout(out, claim.results.at(0));
  memory.emplace_back(static_cast<size_t>(out.bytes_at(1)), std::byte{0x55});
  const OnednnKernel kernel(claim.kernel, *p.chain[0], p.epilogue(), 1);
  ASSERT_EQ(kernel.workspace(), claim.workspace);
  Bytes workspace(static_cast<size_t>(kernel.workspace()));
  std::vector<void*> buffers;
  for (auto& m : memory) buffers.push_back(m.data());
  const OnednnCall call = kernel.bind(buffers.data(), workspace.data());
  call.run();
  call.run();
  const Tensor result = plain_of(memory.back(), out);
  const double transformed = claim.kernel.ends_with("_winograd") ? 10 : 1;
  const double tolerance = p.dtype == f32 ? 2e-5 * transformed : 2e-2;
  for (int64_t i = 0; i < result.numel(); ++i) {
    const double wanted = expected.at(i);
    ASSERT_NEAR(result.at(i), wanted, tolerance * (1 + std::abs(wanted))) << "element " << i;
  }
  for (const Value& v : inputs) v.op()->results[0].type.layout.reset();
  out.layout.reset();
}

// Runs every claim, and returns how many there are.
size_t run_claims(Program& p) {
  p.graph.outputs.push_back({"y", p.result()});
  const Tensor expected = testing::interpret(p.graph, p.feeds).outputs.at("y");
  const std::vector<Claim> offered = onednn_claims(*p.chain[0], p.epilogue(), kRates);
  for (const Claim& claim : offered) {
    SCOPED_TRACE(claim.kernel + (claim.results[0] ? " " + claim.results[0]->str() : " plain"));
    EXPECT_GT(claim.seconds, 0);
    run_claim(p, claim, expected);
  }
  return offered.size();
}

void check_claims(Program& p, size_t claims) { EXPECT_EQ(run_claims(p), claims); }

TEST(Onednn, Conv2dWithBiasAndRelu) {
  Program p;
  const Value x = p.feed({2, 20, 7, 7}), w = p.feed({20, 20, 5, 5}), bias = p.feed({20});
  const Value y = conv2d(x, w, {.padding = 2});
  const Value sum = y + reshape(bias, Shape{20, 1, 1});
  p.then(y);
  p.then(sum);
  p.then(relu(sum));
  check_claims(p, 2);
}

TEST(Onednn, LeavesExtentsBeyond32BitsAlone) {
  ir::Program program("large");
  ir::Graph& graph = program.main();
  const int64_t rows = int64_t{1} << 42;
  const Value x = record_source(graph, "data", "x", {f32, {rows, 8}, {}}, {}, {});
  const Value w = record_source(graph, "data", "w", {f32, {8, 16}, {}}, {}, {});
  EXPECT_TRUE(onednn_claims(*matmul(x, w).op(), {}, kRates).empty());
}

TEST(Onednn, Conv2dOfOneChannel) {
  Program p;
  const Value x = p.feed({2, 1, 11, 13}), w = p.feed({32, 1, 3, 3});
  p.then(conv2d(x, w, {.stride = {2, 1}, .padding = {1, 0, 2, 1}}));
  check_claims(p, 2);
}

TEST(Onednn, Conv2dInGroups) {
  Program p;
  const Value x = p.feed({1, 32, 7, 7}), w = p.feed({32, 16, 3, 3});
  p.then(conv2d(x, w, {.dilation = 2, .groups = 2}));
  EXPECT_GE(run_claims(p), 1u);
}

TEST(Onednn, Conv2dGradients) {
  const Type input = {f32, {2, 16, 9, 9}, {}}, filter = {f32, {32, 16, 3, 3}, {}};
  Program for_input;
  const Value dy = for_input.feed({2, 32, 7, 7}), w = for_input.feed(filter.shape);
  for_input.then(conv2d_grad_input(dy, w, {.input = input}));
  check_claims(for_input, 2);
  Program for_filter;
  const Value x = for_filter.feed(input.shape), gradient = for_filter.feed({2, 32, 7, 7});
  for_filter.then(conv2d_grad_filter(x, gradient, {.filter = filter}));
  check_claims(for_filter, 2);
}

// All claims are right, and the first is Winograd's where that is worth it: with many channels.
void expect_winograd(Program& p, bool first) {
  run_claims(p);
  const std::vector<Claim> claims = onednn_claims(*p.chain[0], p.epilogue(), kRates);
  ASSERT_FALSE(claims.empty());
  EXPECT_EQ(claims.front().kernel.ends_with("_winograd"), first) << claims.front().kernel;
}

TEST(Onednn, WinogradForManyChannels) {
  for (const int64_t channels : {16, 64}) {
    SCOPED_TRACE(channels);
    const Type image = {f32, {1, channels, 7, 8}, {}}, filter = {f32, {128, channels, 3, 3}, {}};
    const Type result = {f32, {1, 128, 7, 8}, {}};
    Program forward, for_input, for_filter;
    const Value x = forward.feed(image.shape), w = forward.feed(filter.shape);
    const Value y = conv2d(x, w, {.padding = 1});
    forward.then(y);
    forward.then(y + reshape(forward.feed({128}), Shape{128, 1, 1}));
    expect_winograd(forward, channels == 64);
    const Value dy = for_input.feed(result.shape);
    for_input.then(
        conv2d_grad_input(dy, for_input.feed(filter.shape), {.padding = 1, .input = image}));
    expect_winograd(for_input, channels == 64);
    const Value seen = for_filter.feed(image.shape);
    for_filter.then(
        conv2d_grad_filter(seen, for_filter.feed(result.shape), {.padding = 1, .filter = filter}));
    expect_winograd(for_filter, channels == 64);
  }
}

struct Case {
  Shape x, w;
  Conv2dAttrs attrs;
};

std::vector<Case> cases() {
  return {{{1, 1, 1, 1}, {1, 1, 1, 1}, {}},
          {{2, 3, 7, 5}, {5, 3, 3, 2}, {.stride = 2, .padding = 1}},
          {{1, 16, 8, 9}, {16, 16, 2, 3}, {.stride = {3, 2}, .padding = {1, 0}}},
          {{1, 16, 7, 7}, {32, 16, 3, 3}, {.stride = {1, 2}, .padding = {0, 1, 2, 0}}},
          {{3, 16, 11, 9}, {16, 16, 3, 2}, {.padding = {2, 1}, .dilation = {2, 3}}},
          {{2, 8, 5, 5}, {6, 4, 3, 3}, {.padding = 1, .groups = 2}},
          {{1, 32, 7, 7}, {32, 16, 3, 3}, {.stride = 2, .groups = 2}},
          {{2, 16, 9, 7}, {16, 1, 3, 3}, {.stride = 2, .padding = 1, .groups = 16}},
          {{1, 37, 5, 3}, {13, 37, 1, 1}, {}}};
}

// A convolution and its gradients of each case; how many claims were made for each of the three.
std::array<size_t, 3> run_cases(DType dtype) {
  std::array<size_t, 3> claims{};
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.x.str() + " and " + c.w.str());
    const Conv2dAttrs& a = c.attrs;
    Program forward{.dtype = dtype};
    const Value y = conv2d(forward.feed(c.x), forward.feed(c.w), a);
    forward.then(y);
    claims[0] += run_claims(forward);
    Program for_input{.dtype = dtype};
    const Value dy = for_input.feed(y.shape());
    for_input.then(
        conv2d_grad_input(dy, for_input.feed(c.w),
                          {a.stride, a.padding, a.dilation, a.groups, Type{dtype, c.x, {}}}));
    claims[1] += run_claims(for_input);
    Program for_filter{.dtype = dtype};
    const Value x = for_filter.feed(c.x);
    for_filter.then(
        conv2d_grad_filter(x, for_filter.feed(y.shape()),
                           {a.stride, a.padding, a.dilation, a.groups, Type{dtype, c.w, {}}}));
    claims[2] += run_claims(for_filter);
  }
  return claims;
}

TEST(Onednn, Conv2dOfAllKinds) {
  for (const size_t claims : run_cases(f32)) EXPECT_GE(claims, cases().size() / 2);
}

TEST(Onednn, Conv2dOfAllKindsInBf16) {
  const std::array<size_t, 3> claims = run_cases(bf16);
  if (claims[0] == 0) GTEST_SKIP() << "oneDNN has no kernels in bf16 for this processor";
}

TEST(Onednn, Conv2dOfAllKindsInF16) {
  for (const size_t claims : run_cases(f16)) EXPECT_GE(claims, cases().size() / 2);
}

TEST(Onednn, MatmulOfF16ByTheKernelsOfF32) {
  Program p{.dtype = f16};
  const Value a = p.feed({7, 4099}), b = p.feed({4099, 19}), bias = p.feed({19});
  const Value y = matmul(a, b), sum = y + bias;
  p.then(y);
  p.then(sum);
  p.then(relu(sum));
  check_claims(p, 1);
}

TEST(Onednn, MatmulWithBiasAndReluInBf16) {
  Program p{.dtype = bf16};
  const Value a = p.feed({7, 33}), b = p.feed({33, 19}), bias = p.feed({19});
  const Value y = matmul(a, b), sum = y + bias;
  p.then(y);
  p.then(sum);
  p.then(relu(sum));
  if (run_claims(p) == 0) GTEST_SKIP() << "oneDNN has no kernels in bf16 for this processor";
}

// The claim for images with their channels last and plain filters, as a pass wants them.
void check_channels_last(Program& p) {
  p.graph.outputs.push_back({"y", p.result()});
  const Tensor expected = testing::interpret(p.graph, p.feeds).outputs.at("y");
  const auto image = [](const Type& type) { return type.shape[0].is(2) && !type.shape[1].is(1); };
  ir::Op& op = *p.chain[0];
  for (const Value& v : op.operands) {
    if (image(v.type())) v.op()->results[0].type.layout = Layout{{0, 2, 3, 1}, {}};
  }
  if (image(op.results[0].type)) op.results[0].type.layout = Layout{{0, 2, 3, 1}, {}};
  const std::vector<Claim> claims = onednn_claims(op, {}, kRates);
  const auto claim = std::ranges::find_if(claims, [&](const Claim& c) { return c.fits(op, op); });
  ASSERT_NE(claim, claims.end());
  run_claim(p, *claim, expected);
}

TEST(Onednn, ConvolutionsWithChannelsLast) {
  for (const int64_t channels : {1, 20}) {
    const Type input = {f32, {2, channels, 9, 9}, {}}, filter = {f32, {20, channels, 3, 3}, {}};
    Program forward, for_filter;
    const Value in = forward.feed(input.shape);
    forward.then(conv2d(in, forward.feed(filter.shape)));
    check_channels_last(forward);
    const Value x = for_filter.feed(input.shape), gradient = for_filter.feed({2, 20, 7, 7});
    for_filter.then(conv2d_grad_filter(x, gradient, {.filter = filter}));
    check_channels_last(for_filter);
    if (channels == 1) continue;
    Program for_input;
    const Value dy = for_input.feed({2, 20, 7, 7}), w = for_input.feed(filter.shape);
    for_input.then(conv2d_grad_input(dy, w, {.input = input}));
    check_channels_last(for_input);
  }
}

TEST(Onednn, MatmulTransposesAndTakesABias) {
  Program p;
  const Value a = p.feed({7, 33}), b = p.feed({19, 7}), bias = p.feed({19});
  const Value y = matmul(a, b, {.transpose_a = true, .transpose_b = true});
  const Value sum = bias + y;
  p.then(y);
  p.then(sum);
  p.then(relu(sum));
  check_claims(p, 1);
}

TEST(Onednn, MatmulOfBatches) {
  Program p;
  p.then(matmul(p.feed({3, 5, 7}), p.feed({3, 7, 4})));
  check_claims(p, 1);
  Program one_matrix;
  const Value a = one_matrix.feed({3, 5, 7});
  one_matrix.then(matmul(a, one_matrix.feed({7, 4})));
  check_claims(one_matrix, 1);
}

TEST(Onednn, ClaimsNothingThatItCannotDo) {
  ir::Program program("f64");
  ir::Graph& g = program.main();
  const Value x = record_source(g, "data", "x", {f64, {2, 2}, {}}, {}, {});
  EXPECT_TRUE(onednn_claims(*matmul(x, x).op(), {}, kRates).empty());
  EXPECT_TRUE(onednn_claims(*exp(x).op(), {}, kRates).empty());
  Program p;
  const Value y = matmul(p.feed({2, 2}), p.feed({2, 2}));
  const Value other = exp(y), row_bias = y + p.feed({2, 1});
  EXPECT_TRUE(onednn_claims(*y.op(), {other.op()}, kRates).empty());
  EXPECT_TRUE(onednn_claims(*y.op(), {row_bias.op()}, kRates).empty());
  EXPECT_THROW(OnednnKernel("onednn.exp", *other.op(), {}, 1), DeviceError);
  EXPECT_THROW(OnednnKernel("onednn.matmul", *x.op(), {}, 1), DeviceError);
}

}  // namespace
}  // namespace fluid
