// How the loops of contractions and of matrix products lie.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <regex>

#include "codegen/compiler.h"
#include "codegen/gpu.h"
#include "codegen/schedule.h"
#include "ops/functions.h"
#include "ops/internal_functions.h"
#include "ops/operators.h"
#include "passes/layouts.h"
#include "passes/pass.h"
#include "passes/pass_table.h"
#include "tests/support/fused_runner.h"
#include "tests/support/kernel_buffers.h"
#include "tests/support/kir_interpreter.h"
#include "tests/support/plain_target.h"

namespace fluid::testing::contraction_test {
namespace {

Value source(ir::Graph& g, const std::string& name, Shape shape, DType dtype = f32) {
  return record_source(g, "data", name, {dtype, std::move(shape), {}}, {}, {});
}

/// Where the stores of a kernel's first block go for one sample, in the first turn of its loops and
/// lane `lane`.
class FirstStores {
 public:
  FirstStores(const kir::Kernel& kernel, int64_t lane) : lane_(lane) {
    vars_[kernel.block_var] = Expr::index(0);
    visit(kernel.body);
  }
  const std::vector<int64_t>& offsets() const { return offsets_; }

 private:
  void visit(const kir::Block& block) {
    for (const kir::Stmt& s : block) {
      if (const auto* loop = std::get_if<kir::For>(&s)) {
        visit(*loop);
      } else if (const auto* let = std::get_if<kir::Let>(&s)) {
        if (let->value.dtype() == DType::i64) lets_[let->id] = value(let->value);
      } else if (const auto* branch = std::get_if<kir::If>(&s)) {
        if (holds(branch->condition)) visit(*branch->body);
      } else if (const auto* store = std::get_if<kir::StoreTo>(&s)) {
        offsets_.push_back(kir::evaluate(value(store->offset), 1));
      }
    }
  }

  void visit(const kir::For& loop) {
    const int64_t begin = kir::evaluate(value(loop.begin), 1);
    const int64_t end = kir::evaluate(value(loop.end), 1);
    if (begin >= end) return;
    const bool unrolled = loop.kind == kir::For::Kind::unroll;
    for (int64_t i = begin; i < (unrolled ? end : begin + 1); ++i) {
      vars_[loop.var] = Expr::index(loop.kind == kir::For::Kind::vector ? i + lane_ : i);
      visit(*loop.body);
    }
  }

  /// Evaluates a guard `a < b` or `a >= b`.
  bool holds(const Expr& e) const {
    const bool less = kir::evaluate(value(e.args()[0]), 1) < kir::evaluate(value(e.args()[1]), 1);
    return less == (e.op() == ScalarOp::lt);
  }

  Expr value(const Expr& e) const {
    return rewrite(e, [&](const Expr& leaf) {
      if (leaf.op() == ScalarOp::var) return vars_.at(leaf.node().ivalue);
      if (leaf.op() == ScalarOp::let) return lets_.at(leaf.node().ivalue);
      return Expr();
    });
  }

  int64_t lane_;
  std::map<int64_t, Expr> vars_, lets_;
  std::vector<int64_t> offsets_;
};

void expect_neighbours(const kir::Kernel& kernel) {
  const std::vector<int64_t> first = FirstStores(kernel, 0).offsets();
  const std::vector<int64_t> second = FirstStores(kernel, 1).offsets();
  ASSERT_FALSE(first.empty());
  for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(second[i], first[i] + 1) << print(kernel);
}

/// A weight's gradient, the sum over few samples, and the update that it goes into.
void record_update(ir::Program& program, bool transposed) {
  ir::Graph& g = program.main();
  const Value x = source(g, "x", {32, 512}), dy = source(g, "dy", {32, 256});
  const Value gradient =
      transposed ? matmul(dy, x, {.transpose_a = true}) : matmul(x, dy, {.transpose_a = true});
  g.outputs.push_back({"w", source(g, "w", gradient.shape()) - gradient * 0.1});
  fuse_pass().run(program, {}, PlainTarget());
  outline_pass().run(program, {}, PlainTarget());
}

/// The vector lanes must be neighbours in the result and in the tensors of the epilogue, although
/// both operands of the product have contiguous elements.
TEST(Contraction, LanesWriteNeighbours) {
  for (const bool transposed : {false, true}) {
    ir::Program program("p");
    record_update(program, transposed);
    const ir::Op& fused = *program.main().outputs.front().value.op();
    ASSERT_EQ(fused.name, "fused");
    ASSERT_EQ(fused.operands.size(), 3U);  // with the product
    const ir::Graph& body = *program.find(fused.attrs.get<GraphRef>("body").name);
    expect_neighbours(schedule(body, "k"));
    for (const kir::Kernel& pass : schedule_gpu(body, "k")) expect_neighbours(pass);
  }
}

/// The largest number of accumulators that a statement of `block` declares.
int64_t accumulators_in(const kir::Block& block) {
  int64_t most = 0;
  for (const kir::Stmt& s : block) {
    if (const auto* loop = std::get_if<kir::For>(&s)) {
      most = std::max(most, accumulators_in(*loop->body));
    } else if (const auto* branch = std::get_if<kir::If>(&s)) {
      most = std::max(most, accumulators_in(*branch->body));
    } else if (const auto* acc = std::get_if<kir::Accumulator>(&s)) {
      int64_t count = 1;
      for (const int64_t d : acc->dims) count *= d;
      most = std::max(most, count);
    }
  }
  return most;
}

/// As in a depthwise convolution, each channel has filters of its own, which are not adjacent for
/// adjacent channels. A tile of pixels shares each gathered filter.
TEST(Contraction, PixelsShareGatheredFilters) {
  ir::Program program("p");
  ir::Graph& g = program.main();
  const Value x = source(g, "x", {kBatch, 12, 30, 40}), w = source(g, "w", {40, 12});
  const Value filters = unsqueeze(transpose(w, {.perm = {1, 0}}), {.axes = {1}});
  g.outputs.push_back({"y", sum(x * filters, {.axes = {1}})});
  expect_fused_as_interpreted(program, 2, 1e-5, 1);
  fuse_pass().run(program, {}, PlainTarget());
  outline_pass().run(program, {}, PlainTarget());
  const ir::Op& fused = *g.outputs.front().value.op();
  ASSERT_EQ(fused.name, "fused");
  const ir::Graph& body = *program.find(fused.attrs.get<GraphRef>("body").name);
  EXPECT_GE(accumulators_in(schedule(body, "k").body), 8);
}

/// One sample's product with a matrix reads the matrix along its rows: several vectors in turn.
TEST(Contraction, AFewRowsReadLongStretches) {
  ir::Program program("p");
  ir::Graph& g = program.main();
  const Value x = record_source(g, "data", "x", {f32, {kBatch, 320}, {}}, {}, {});
  g.outputs.push_back({"y", matmul(x, source(g, "w", {320, 1024}))});
  fuse_pass().run(program, {}, PlainTarget());
  outline_pass().run(program, {}, PlainTarget());
  const ir::Op& fused = *program.main().outputs.front().value.op();
  const ir::Graph& body = *program.find(fused.attrs.get<GraphRef>("body").name);
  const std::vector<int64_t> offsets = FirstStores(schedule(body, "k"), 0).offsets();
  const std::vector<int64_t> wanted = {0, 16, 32, 48, 64, 80, 96, 112};
  ASSERT_GE(offsets.size(), wanted.size());
  EXPECT_EQ(std::vector(offsets.begin(), offsets.begin() + 8), wanted);
}

/// Whether `block` prefetches, as the code for a single row does.
bool prefetches(const kir::Block& block) {
  return std::ranges::any_of(block, [](const kir::Stmt& s) {
    if (const auto* loop = std::get_if<kir::For>(&s)) return prefetches(*loop->body);
    if (const auto* branch = std::get_if<kir::If>(&s)) return prefetches(*branch->body);
    return std::holds_alternative<kir::Prefetch>(s);
  });
}

struct LayerCase {
  int64_t rows, columns, batch;
  int64_t vectors;  ///< most accumulators of a tile or of a single row
  DType dtype = f32;
};

/// relu(x w - 500 b), where w is a matrix of the case's rows and columns.
void record_layer(ir::Program& program, const LayerCase& c) {
  ir::Graph& g = program.main();
  const Value x = source(g, "x", {kBatch, c.rows}, c.dtype);
  const Value w = source(g, "w", {c.rows, c.columns}, c.dtype);
  g.outputs.push_back({"y", relu(matmul(x, w) - source(g, "b", {c.columns}, c.dtype) * 500.0)});
}

/// The kernel of record_layer().
kir::Kernel layer_kernel(const LayerCase& c) {
  ir::Program program("p");
  record_layer(program, c);
  fuse_pass().run(program, {}, PlainTarget());
  outline_pass().run(program, {}, PlainTarget());
  const ir::Op& fused = *program.main().outputs.front().value.op();
  return schedule(*program.find(fused.attrs.get<GraphRef>("body").name), "k");
}

/// Element i, j of what record_layer() computes.
double layer_result(const LayerCase& c, const NamedTensors& sources, int64_t i, int64_t j) {
  const Tensor &x = sources.at("x"), &w = sources.at("w");
  double sum = -500.0 * sources.at("b").at(j);
  for (int64_t k = 0; k < c.rows; ++k) sum += x.at(i * c.rows + k) * w.at(k * c.columns + j);
  return std::max(sum, 0.0);
}

Tensor run_layer(const LayerCase& c, const NamedTensors& sources, const FusedOptions& options) {
  ir::Program program("p");
  record_layer(program, c);
  return run_fused(program, sources, options).outputs.at("y");
}

/// The kernel has tiles of samples for large batches. Samples that are left over, such as the last
/// of 13, are multiplied one by one, with accumulators in memory.
TEST(Contraction, ALargeMatrixIsReadRowByRow) {
  for (const LayerCase& c :
       {LayerCase{1024, 1024, 1, 24}, LayerCase{1027, 1003, 13, 24}, LayerCase{130, 4112, 3, 32},
        LayerCase{70, 4112, 1, 64, f64}, LayerCase{1024, 1024, 1, 24, bf16}}) {
    SCOPED_TRACE(std::to_string(c.rows) + " x " + std::to_string(c.columns) + ", " +
                 std::string(name_of(c.dtype)));
    const kir::Kernel kernel = layer_kernel(c);
    EXPECT_EQ(accumulators_in(kernel.body), c.vectors);
    EXPECT_TRUE(prefetches(kernel.body));
    ir::Program program("p");
    record_layer(program, c);
    const NamedTensors sources = random_sources(program, c.batch, 1);
    const Tensor whole = run_layer(c, sources, {.batch = c.batch});
    for (int64_t i = 0; i < c.batch; ++i) {
      for (int64_t j = 0; j < c.columns; j += 7) {
        const double expected = layer_result(c, sources, i, j);
        ASSERT_NEAR(whole.at(i * c.columns + j), expected, c.dtype == bf16 ? 8 : 1e-2);
      }
    }
    const Tensor parts = run_layer(c, sources, {.batch = c.batch, .block_by_block = true});
    EXPECT_EQ(0, std::memcmp(whole.data(), parts.data(), static_cast<size_t>(whole.bytes())));
  }
}

struct ProductCase {
  Shape a, b;
  bool transpose_a = false;
  int64_t batch = 1;
  DType dtype = f32;
};

/// relu(a b - c).
void record_product(ir::Program& program, const ProductCase& c) {
  ir::Graph& g = program.main();
  const Value y = matmul(source(g, "a", c.a, c.dtype), source(g, "b", c.b, c.dtype),
                         {.transpose_a = c.transpose_a});
  g.outputs.push_back({"y", relu(y - source(g, "c", y.shape(), c.dtype))});
}

kir::Kernel product_kernel(const ProductCase& c, int64_t accumulators) {
  ir::Program program("p");
  record_product(program, c);
  fuse_pass().run(program, {}, PlainTarget());
  outline_pass().run(program, {}, PlainTarget());
  const ir::Op& fused = *program.main().outputs.front().value.op();
  return schedule(*program.find(fused.attrs.get<GraphRef>("body").name), "k", accumulators);
}

/// Extents of which tiles leave rows, columns and lanes over, for each number of registers.
TEST(MatrixProduct, ComputesWhatTilesLeaveOver) {
  for (const ProductCase& c :
       {ProductCase{{kBatch, 37}, {37, 67}}, ProductCase{{kBatch, 37}, {37, 67}, false, 23},
        ProductCase{{17, 19}, {19, 130}}, ProductCase{{13, 101}, {101, 13}},
        ProductCase{{2, 7, 29}, {2, 29, 83}},
        ProductCase{{kBatch, 9, 31}, {kBatch, 31, 64}, false, 5},
        ProductCase{{kBatch, 12}, {kBatch, 48}, true, 71}, ProductCase{{37, 33}, {37, 81}, true},
        ProductCase{{kBatch, 41}, {41, 77}, false, 11, bf16}}) {
    SCOPED_TRACE(c.a.str() + " times " + c.b.str());
    ir::Program program("p");
    record_product(program, c);
    expect_fused_as_interpreted(program, c.batch, c.dtype == bf16 ? 2e-2 : 1e-5);
  }
}

/// The bits of the result of `kernel` for the arguments of `c`.
std::vector<float> interpreted_product(const kir::Kernel& kernel, const ProductCase& c,
                                       NamedTensors sources) {
  std::vector<float> y(static_cast<size_t>(kernel.buffers[3].elements.at(c.batch)));
  std::vector<void*> buffers = {sources.at("a").data(), sources.at("b").data(),
                                sources.at("c").data(), y.data()};
  std::vector<Tensor> local;
  for (size_t i = buffers.size(); i < kernel.buffers.size(); ++i) {
    local.push_back(memory_of(kernel, kernel.buffers[i], c.batch));
    buffers.push_back(local.back().data());
  }
  interpret(kernel, buffers, c.batch);
  return y;
}

TEST(MatrixProduct, RegistersDoNotChangeResults) {
  for (const ProductCase& c : {ProductCase{{kBatch, 40}, {40, 70}, false, 15},
                               ProductCase{{280, 101}, {280, 130}, true}}) {
    ir::Program program("p");
    record_product(program, c);
    const NamedTensors sources = random_sources(program, c.batch, 1);
    const std::vector<float> expected =
        interpreted_product(product_kernel(c, kMaxCpuAccumulators), c, sources);
    for (const int bits : {128, 256}) {
      const kir::Kernel kernel = product_kernel(c, cpu_accumulators(bits));
      EXPECT_EQ(interpreted_product(kernel, c, sources), expected) << bits;
    }
  }
}

int64_t local_buffers(const kir::Kernel& kernel) {
  return std::ssize(kernel.buffers) - kir::argument_count(kernel);
}

/// A long sum is divided into strips, between which the partial sums of many tiles are in memory. A
/// transposed left operand is packed.
TEST(MatrixProduct, DividesLongSumsIntoStrips) {
  for (const ProductCase& c :
       {ProductCase{{96, 2100}, {2100, 520}}, ProductCase{{333, 200}, {333, 264}, true},
        ProductCase{{333, 200}, {333, 264}, true, 1, bf16},
        ProductCase{{kBatch, 200}, {kBatch, 264}, true, 130}}) {
    SCOPED_TRACE(c.a.str() + " times " + c.b.str());
    EXPECT_EQ(local_buffers(product_kernel(c, kMaxCpuAccumulators)), c.transpose_a ? 2 : 1);
    ir::Program program("p");
    record_product(program, c);
    const NamedTensors sources = random_sources(program, c.batch, 1);
    const auto run = [&](bool block_by_block) {
      ir::Program fused("p");
      record_product(fused, c);
      return run_fused(fused, sources, {.batch = c.batch, .block_by_block = block_by_block})
          .outputs.at("y");
    };
    const Tensor whole = run(false), parts = run(true);
    EXPECT_EQ(0, std::memcmp(whole.data(), parts.data(), static_cast<size_t>(whole.bytes())));
    const Tensor &a = sources.at("a"), &b = sources.at("b");
    const int64_t columns = b.shape()[1], terms = b.shape()[0];
    const int64_t rows = whole.numel() / columns;
    for (int64_t i = 0; i < rows; i += 5) {
      for (int64_t j = 0; j < columns; j += 7) {
        double sum = -sources.at("c").at(i * columns + j);
        for (int64_t k = 0; k < terms; ++k) {
          sum += a.at(c.transpose_a ? k * rows + i : i * terms + k) * b.at(k * columns + j);
        }
        const double expected = std::max(sum, 0.0);
        ASSERT_NEAR(whole.at(i * columns + j), expected,
                    (c.dtype == bf16 ? 1e-2 : 1e-5) * (1 + expected));
      }
    }
  }
}

/// Rows whose distance is a multiple of 4 KiB are in the same set of the L1 cache. A tile has at
/// most six of them.
TEST(MatrixProduct, RowsOfATileFitInASetOfTheCache) {
  for (const auto& [terms, accumulators] : {std::pair<int64_t, int64_t>(1024, 24), {1000, 27}}) {
    const ProductCase c{{1024, terms}, {terms, 1024}};
    EXPECT_EQ(accumulators_in(product_kernel(c, kMaxCpuAccumulators).body), accumulators);
  }
}

/// Each combination of sizes has other remainders, for each number of vector registers.
TEST(MatrixProduct, OddSizesAreInterpretedEqually) {
  const std::vector<int64_t> sizes = {1, 2, 7, 17, 63, 64, 65, 257};
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int64_t m = sizes[i], n = sizes[(3 * i + 1) % sizes.size()];
    const int64_t k = sizes[(5 * i + 4) % sizes.size()];
    for (const bool transpose_a : {false, true}) {
      SCOPED_TRACE(fmt::format("{} {} {} {}", m, k, n, transpose_a));
      const ProductCase c{transpose_a ? Shape{k, m} : Shape{m, k}, {k, n}, transpose_a};
      ir::Program program("p");
      record_product(program, c);
      expect_fused_as_interpreted(program, 1, 1e-5);
    }
  }
}

#if defined(__x86_64__)
/// A full tile has a loop of as many multiply-adds as it has registers, which reads no stack.
TEST(MatrixProduct, TilesFitInRegisters) {
  const ProductCase c{{kBatch, 256}, {256, 1024}};
  for (const auto& [cpu, bits, registers] :
       {std::tuple("x86-64-v4", 512, 24), {"x86-64-v3", 256, 12}}) {
    const std::string text = emit_assembly(product_kernel(c, cpu_accumulators(bits)), cpu);
    const std::regex multiply_add("vfmadd");
    bool found = false;
    for (size_t at = 0; at != std::string::npos;) {
      const size_t next = text.find("\n.LBB", at + 1);
      const std::string block = text.substr(at, next - at);
      const auto begin = std::sregex_iterator(block.begin(), block.end(), multiply_add);
      found = found || (std::distance(begin, std::sregex_iterator()) == registers &&
                        block.find("%rsp") == std::string::npos);
      at = next;
    }
    EXPECT_TRUE(found) << text;
  }
}
#endif

struct DepthwiseCase {
  int64_t channels, side, taps, stride;
};

/// The update of a depthwise filter: one sum for each channel and tap.
void record_depthwise_update(ir::Program& program, const DepthwiseCase& c) {
  ir::Graph& g = program.main();
  const int64_t out = (c.side - 1) / c.stride + 1;
  const Value x = source(g, "x", {kBatch, c.channels, c.side, c.side});
  const Value dy = source(g, "dy", {kBatch, c.channels, out, out});
  const Type filter{f32, {c.channels, 1, c.taps, c.taps}, {}};
  const Value gradient = internal::conv2d_grad_filter(
      x, dy,
      {.stride = {c.stride}, .padding = {c.taps / 2}, .groups = c.channels, .filter = filter});
  g.outputs.push_back({"w", source(g, "w", filter.shape) - gradient * 0.1});
}

/// Moves the channels of images to the end.
Tensor with_channels_last(const Tensor& images) {
  Tensor moved(images.dtype(), images.shape());
  const std::vector<int64_t>& shape = images.shape();
  const int64_t pixels = shape[2] * shape[3];
  for (int64_t n = 0; n < shape[0]; ++n) {
    for (int64_t c = 0; c < shape[1]; ++c) {
      for (int64_t p = 0; p < pixels; ++p) {
        moved.as<float>()[static_cast<size_t>((n * pixels + p) * shape[1] + c)] =
            images.as<float>()[static_cast<size_t>((n * shape[1] + c) * pixels + p)];
      }
    }
  }
  return moved;
}

/// The update from images with channels last, by generated kernels.
Tensor updated(const DepthwiseCase& c, const NamedTensors& sources, const FusedOptions& options) {
  ir::Program program("p");
  record_depthwise_update(program, c);
  NamedTensors moved = sources;
  for (const char* name : {"x", "dy"}) {
    program.main().find("data", name)->results[0].type.layout = channels_last();
    moved.at(name) = with_channels_last(sources.at(name));
  }
  return run_fused(program, moved, options).outputs.at("w");
}

kir::Kernel depthwise_kernel(const DepthwiseCase& c) {
  ir::Program program("p");
  record_depthwise_update(program, c);
  for (const char* name : {"x", "dy"}) {
    program.main().find("data", name)->results[0].type.layout = channels_last();
  }
  fuse_pass().run(program, {}, PlainTarget());
  outline_pass().run(program, {}, PlainTarget());
  const ir::Op& fused = *program.main().outputs.front().value.op();
  return schedule(*program.find(fused.attrs.get<GraphRef>("body").name), "k");
}

/// Blocks divide the pixels, so that many threads share few results. The cases have a partial last
/// vector of channels, a partial last strip, and a row without pixels that need no mask.
TEST(Contraction, BlocksDivideTheSumsOfDepthwiseFilters) {
  constexpr int64_t kImages = 3;
  for (const DepthwiseCase& c :
       {DepthwiseCase{24, 15, 3, 1}, DepthwiseCase{16, 21, 5, 2}, DepthwiseCase{16, 7, 7, 1}}) {
    const kir::Kernel kernel = depthwise_kernel(c);
    EXPECT_FALSE(kernel.finish.empty());
    EXPECT_GE(kir::evaluate(kernel.blocks, 6400), 16);

    ir::Program program("p");
    record_depthwise_update(program, c);
    const NamedTensors sources = random_sources(program, kImages, 1);
    const Tensor expected = interpret(program.main(), sources, {.batch = kImages}).outputs.at("w");
    const Tensor whole = updated(c, sources, {.batch = kImages});
    for (size_t i = 0; i < expected.as<float>().size(); ++i) {
      ASSERT_NEAR(expected.as<float>()[i], whole.as<float>()[i], 1e-3) << "element " << i;
    }
    for (const FusedOptions& options : {FusedOptions{.batch = kImages, .block_by_block = true},
                                        FusedOptions{.batch = kImages, .in_place = true}}) {
      const Tensor other = updated(c, sources, options);
      EXPECT_EQ(0, std::memcmp(whole.data(), other.data(), static_cast<size_t>(whole.bytes())));
    }
  }
}

}  // namespace
}  // namespace fluid::testing::contraction_test
