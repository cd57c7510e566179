#include "tests/support/library_program.h"

#include <gtest/gtest.h>

#include <cmath>
#include <new>

#include "ops/functions.h"
#include "passes/memory_plan.h"
#include "tests/support/golden.h"

namespace fluid::testing {
namespace {

Tensor golden_tensor(const Type& type, uint64_t stream) {
  std::vector<int64_t> shape;
  for (const Dim& d : type.shape) shape.push_back(d.size);
  Tensor t(f64, shape);
  const std::vector<double> u = golden_uniform(stream, t.numel());
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

// The feed behind an input: a bias is a reshaped one, with the same bytes.
const Tensor& tensor_of(const LibraryProgram& p, const Value& v) {
  const ir::Op* op = v.op();
  while (op->symbol.empty()) op = op->operands.at(0).op();
  return p.feeds.at(op->symbol);
}

Type with_layout(Type type, const std::optional<Layout>& layout) {
  type.layout = layout;
  return type;
}

}  // namespace

Value LibraryProgram::feed(Shape shape) {
  const std::string name = "x" + std::to_string(feeds.size());
  const Type type = {dtype, std::move(shape), {}};
  feeds.insert({name, golden_tensor(type, feeds.size())});
  return record_source(graph, "data", name, type, {}, {});
}

Values LibraryProgram::inputs() const {
  Values values;
  for (size_t i = 0; i < chain.size(); ++i) {
    for (const Value& v : chain[i]->operands) {
      if (i == 0 || v.op() != chain[i - 1]) values.push_back(v);
    }
  }
  return values;
}

Tensor run_candidate(LibraryProgram& p, const MakeKernel& make, const KernelCandidate& candidate) {
  const Values inputs = p.inputs();
  std::vector<Bytes> memory;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto layout = i < candidate.operands.size() ? candidate.operands[i] : std::nullopt;
    Type& type = inputs[i].op()->results[0].type;
    type = with_layout(type, layout);
    memory.push_back(laid_out(tensor_of(p, inputs[i]), type));
  }
  Type& out = p.chain.back()->results[0].type;
  out = with_layout(out, candidate.results.at(0));
  memory.emplace_back(static_cast<size_t>(out.bytes_at(1)), std::byte{0x55});
  const LibraryRoutine kernel = make(candidate.kernel, *p.chain[0], p.epilogue(), 1);
  EXPECT_EQ(kernel.workspace, candidate.workspace);
  Bytes workspace(static_cast<size_t>(kernel.workspace), std::byte{0xff});  // NaNs
  std::vector<void*> buffers, others;
  for (auto& m : memory) buffers.push_back(m.data());
  auto elsewhere = memory;
  for (auto& m : elsewhere) others.push_back(m.data());
  LibraryCall call = kernel.bind(others.data(), workspace.data());
  if (call.rebind) {
    call.rebind(buffers.data());
  } else {
    call = kernel.bind(buffers.data(), workspace.data());
  }
  call.run();
  call.run();
  Tensor result = plain_of(memory.back(), out);
  for (const Value& v : inputs) v.op()->results[0].type.layout.reset();
  out.layout.reset();
  return result;
}

void expect_near(const Tensor& result, const Tensor& expected, double tolerance) {
  ASSERT_EQ(result.shape(), expected.shape());
  for (int64_t i = 0; i < result.numel(); ++i) {
    const double wanted = expected.at(i);
    ASSERT_NEAR(result.at(i), wanted, tolerance * (1 + std::abs(wanted))) << "element " << i;
  }
}

std::vector<ConvolutionCase> convolution_cases() {
  return {{{1, 1, 1, 1}, {1, 1, 1, 1}, {}},
          {{2, 3, 7, 5}, {5, 3, 3, 2}, {.stride = 2, .padding = 1}},
          {{1, 16, 8, 9}, {16, 16, 2, 3}, {.stride = {3, 2}, .padding = {1, 0}}},
          {{3, 16, 11, 9}, {16, 16, 3, 2}, {.padding = {2, 1}, .dilation = {2, 3}}},
          {{2, 8, 5, 5}, {6, 4, 3, 3}, {.padding = 1, .groups = 2}},
          {{2, 16, 9, 7}, {16, 1, 3, 3}, {.stride = 2, .padding = 1, .groups = 16}},
          {{1, 37, 5, 3}, {13, 37, 1, 1}, {}}};
}

}  // namespace fluid::testing
