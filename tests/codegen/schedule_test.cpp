// Fused groups compute what their ops do: named cases, and random graphs.

#include "codegen/schedule.h"

#include <gtest/gtest.h>

#include <random>

#include "codegen/compiler.h"
#include "ops/functions.h"
#include "ops/internal_functions.h"
#include "ops/operators.h"
#include "ops/random/initializer.h"
#include "passes/pass_table.h"
#include "tests/support/full_run.h"
#include "tests/support/fused_runner.h"
#include "tests/support/kir_builder.h"
#include "tests/support/op_group.h"
#include "tests/support/plain_target.h"

namespace fluid::schedule_test {
namespace {

using testing::expect_fused_as_interpreted;

Value input(ir::Graph& g, const std::string& name, Shape shape, DType dtype = f64) {
  return record_source(g, "data", name, {dtype, std::move(shape), {}}, {}, {});
}

/// Records by `build`, which returns the outputs; gives the number of kernels.
int check_program(int64_t batch, const std::function<Values(ir::Graph&)>& build,
                  double tolerance = 1e-12, uint64_t seed = 1) {
  ir::Program program("p");
  ir::Graph& g = program.main();
  for (const Value& v : build(g)) g.outputs.push_back({std::to_string(g.outputs.size()), v});
  return expect_fused_as_interpreted(program, batch, tolerance, seed);
}

/// They differ in extent, rank, scale and random stream.
TEST(Schedule, InitializersOfAllShapesShareCode) {
  const auto scheduled = [](const Shape& shape, const std::string& name, double std) {
    ir::Program recorded("recorded"), fused("fused");
    const Value seed = input(recorded.main(), "seed", {}, i64);
    const Attrs attrs = {{"init", std::string("normal")}, {"std", std}, {"mean", 1.0}};
    const Value v = record_initializer(recorded.main(), seed, name, {f32, shape, {}}, attrs, {});
    testing::make_group(*v.op(), fused.main());
    return schedule(fused.main(), "k");
  };
  const std::vector<kir::Kernel> kernels = {scheduled({5000}, "a", 0.5),
                                            scheduled({3, 11, 7}, "b", 2)};
  Compiler compiler({});
  const auto code = compiler.compile(std::vector{&kernels[0], &kernels[1]});
  EXPECT_EQ(compiler.stats().compiled + compiler.stats().cache_hits, 1);
  EXPECT_EQ(code[0].body, code[1].body);
}

TEST(Schedule, MapsBroadcastAndTranspose) {
  EXPECT_EQ(1, check_program(5, [](ir::Graph& g) {
              const Value x = input(g, "x", {kBatch, 3, 7}), b = input(g, "b", {3, 1});
              return Values{relu(x * b - 1.0)};
            }));
  EXPECT_EQ(1, check_program(1, [](ir::Graph& g) {
              const Value x = input(g, "x", {19, 35});
              return Values{transpose(x, {.perm = {1, 0}}) * 2.0};
            }));
}

/// Up to four channels are interleaved, whole vectors at a time.
TEST(Schedule, SlicesOfFlippedTiles) {
  EXPECT_EQ(1, check_program(1, [](ir::Graph& g) {
              const Value tiles = tile(input(g, "x", {2}), {.repeats = 3});
              const Value odd = slice(tiles, {.starts = 0, .stops = 5});
              return Values{slice(flip(odd, {.axes = 0}), {.starts = 1, .stops = 5, .steps = 2})};
            }));
}

TEST(Schedule, FewChannelsMoveToTheEnd) {
  for (const int64_t channels : {2, 3, 4, 5}) {
    for (const DType dtype : {f32, u8}) {
      EXPECT_EQ(1, check_program(3, [&](ir::Graph& g) {
                  const Value x = input(g, "x", {kBatch, channels, 75}, dtype);
                  return Values{transpose(x, {.perm = {0, 2, 1}})};
                }));
    }
  }
}

/// The sums have no variable in common but the sample and the channel, which is in lanes.
TEST(Schedule, EachResultOfARowHasItsOwnLanes) {
  EXPECT_EQ(1, check_program(3, [](ir::Graph& g) {
              const Value x = input(g, "x", {kBatch, 6, 5, 40});
              return Values{max(x, {.axes = 1}), sum(x, {.axes = 2}), x * 2.0};
            }));
}

TEST(Schedule, ReductionsOverAnyAxes) {
  for (const Ints& axes : {Ints{0}, Ints{1}, Ints{2}, Ints{0, 2}, Ints{1, 2}, Ints{0, 1, 2}}) {
    for (int64_t batch : {1, 3, 700}) {
      check_program(batch, [&](ir::Graph& g) {
        const Value x = input(g, "x", {kBatch, 5, 18});
        return Values{sum(x, {.axes = axes}), max(x, {.axes = axes})};
      });
    }
  }
}

/// The factors are near 1, so that no product overflows.
TEST(Schedule, ProductsOverAnyAxes) {
  for (const Ints& axes : {Ints{0}, Ints{1}, Ints{2}, Ints{0, 2}, Ints{1, 2}, Ints{0, 1, 2}}) {
    for (int64_t batch : {0, 1, 3, 700}) {
      check_program(batch, [&](ir::Graph& g) {
        const Value x = input(g, "x", {kBatch, 5, 18});
        const Value y = prod(x * 0.01 + 1.0, {.axes = axes});
        return Values{y, y * 2.0, sum(x, {.axes = axes})};
      });
    }
  }
  check_program(1, [](ir::Graph& g) {  // passes of several blocks and threads
    const Value x = input(g, "x", {2500, 12}) * 0.01 + 1.0;
    return Values{prod(x), prod(x, {.axes = 0}), prod(x, {.axes = 1}), x / prod(x)};
  });
}

TEST(Schedule, LongRowsAndColumns) {
  check_program(3, [](ir::Graph& g) {
    const Value x = input(g, "x", {kBatch, 1500});
    return Values{softmax(x), argmax(x, {.axis = 1}), max(x, {.axes = 1}), sum(x, {.axes = 1})};
  });
  check_program(1, [](ir::Graph& g) {  // passes of several blocks and threads
    const Value x = input(g, "x", {2500, 12});
    const Value y = sum(x), least = min(x), columns = sum(x, {.axes = 0});
    return Values{y, y * 2.0 + least, columns * 3.0, max(x), relu(x - 1.0)};
  });
  check_program(700, [](ir::Graph& g) {
    const Value x = input(g, "x", {kBatch, 300});
    return Values{sum(x, {.axes = 0}), mean(x * x), log_softmax(x)};
  });
}

TEST(Schedule, EmptyBatch) {
  check_program(0, [](ir::Graph& g) {
    const Value x = input(g, "x", {kBatch, 5});
    return Values{sum(x), sum(x, {.axes = 1}), relu(x)};
  });
}

/// With extents that fill vectors and tiles beside the empty ones.
TEST(Schedule, EmptyProducts) {
  for (const auto& [rows, terms, columns] :
       {std::tuple(0, 64, 64), {64, 0, 64}, {64, 64, 0}, {0, 784, 10}, {0, 0, 16}, {0, 16, 0}}) {
    check_program(1, [&](ir::Graph& g) {
      const Value a = input(g, "a", {rows, terms}), b = input(g, "b", {terms, columns});
      const Value dy = input(g, "dy", {rows, columns});
      return Values{relu(matmul(a, b)), matmul(a, dy, {.transpose_a = true}),
                    matmul(dy, b, {.transpose_b = true})};
    });
  }
  check_program(1, [](ir::Graph& g) {  // operands are not empty
    const Value x = input(g, "x", {64, 64}), w = input(g, "w", {64, 64});
    const Value rows = slice(x, {.starts = 64, .stops = 70, .axes = 0});
    return Values{matmul(rows, w), matmul(rows, rows, {.transpose_a = true}),
                  matmul(w, rows, {.transpose_b = true})};
  });
}

TEST(Schedule, EmptyConvolutions) {
  for (const auto& [images, channels, filters] :
       {std::tuple(0, 16, 32), {2, 16, 0}, {2, 0, 32}, {0, 0, 32}, {0, 16, 0}}) {
    check_program(1, [&](ir::Graph& g) {
      const Value x = input(g, "x", {images, channels, 6, 18});
      const Value w = input(g, "w", {filters, channels, 3, 3});
      const Value y = conv2d(x, w), dy = input(g, "dy", y.shape());
      return Values{relu(y), internal::conv2d_grad_input(dy, w, {.input = x.type()}),
                    internal::conv2d_grad_filter(x, dy, {.filter = w.type()})};
    });
  }
}

TEST(Schedule, SoftmaxRowsAreOneKernel) {
  for (int64_t classes : {1, 10, 33}) {
    const int kernels = check_program(50, [&](ir::Graph& g) {
      const Value x = input(g, "x", {kBatch, classes});
      return Values{softmax(x), log_softmax(x)};
    });
    EXPECT_LE(kernels, 2);
  }
}

TEST(Schedule, RowResultsFeedAMeanAndColumnSums) {
  for (int64_t columns : {3, 10, 40}) {
    check_program(333, [&](ir::Graph& g) {
      const Value y = softmax(input(g, "x", {kBatch, columns}));
      return Values{y, sum(y, {.axes = 0}), mean(y * y)};
    });
  }
}

/// With more elements than fit in register accumulators: threads share the loop of a sum, but not a
/// single sum.
TEST(Schedule, RowResultsBesideSumsOverRowsAndMore) {
  for (const auto& [a, b] : {std::pair(7, 48), {16, 16}, {10, 16}, {3, 1100}}) {
    check_program(19, [&](ir::Graph& g) {
      const Value x = input(g, "x", {kBatch, a, b});
      return Values{sqrt(sum(x, {.axes = {1, 2}})), sum(x, {.axes = {0, 1}})};
    });
    check_program(19, [&](ir::Graph& g) {
      const Value x = input(g, "x", {kBatch, a, b});
      return Values{sqrt(sum(x, {.axes = {1, 2}})), sum(x, {.axes = 0}), max(x, {.axes = {0, 2}}),
                    sum(x, {.axes = {0, 1}}), argmax(x, {.axis = 2})};
    });
  }
}

/// The rows are read in another order than the columns, so one loop nest has both reductions.
TEST(Schedule, RowSumsBesideColumnSumsOfFlippedRows) {
  for (const int64_t rows : {8, 16, 130}) {
    check_program(rows, [&](ir::Graph& g) {
      const Value x = input(g, "x", {rows, 3});
      return Values{sum(x, {.axes = 1}), sum(flip(x, {.axes = {0}}), {.axes = 0})};
    });
    check_program(rows, [&](ir::Graph& g) {
      const Value x = input(g, "x", {rows, 5});
      return Values{max(slice(x, {.starts = {1}, .stops = {rows}, .axes = {0}}), {.axes = 1}),
                    sum(slice(x, {.starts = {0}, .stops = {rows - 1}, .axes = {0}}), {.axes = 0})};
    });
  }
}

TEST(Schedule, LinearRegressionIsOneSweep) {
  EXPECT_EQ(1, check_program(5000, [](ir::Graph& g) {
              const Value x = input(g, "x", {kBatch, 2}), y = input(g, "y", {kBatch, 1});
              const Value w = input(g, "w", {2, 1}), b = input(g, "b", {1});
              const Value r = matmul(x, w) + b - y;
              const Value dw = matmul(x, r, {.transpose_a = true});
              return Values{sum(r * r), w - dw * 0.1, b - sum(r, {.axes = 0}) * 0.1};
            }));
}

TEST(Schedule, MatrixProducts) {
  for (int64_t n : {1, 7, 37}) {
    check_program(29, [&](ir::Graph& g) {
      const Value a = input(g, "a", {kBatch, 30}), b = input(g, "b", {30, n});
      const Value bt = input(g, "bt", {n, 30}), c = input(g, "c", {kBatch, n});
      return Values{relu(matmul(a, b) + c), matmul(a, bt, {.transpose_b = true}),
                    matmul(a, c, {.transpose_a = true})};
    });
  }
}

/// Fewer than a tile has, and columns in whole strips of vectors, or with some left over.
TEST(Schedule, ProductsOfFewRows) {
  for (int64_t rows : {1, 3, 4, 7, 21}) {
    for (int64_t columns : {64, 300}) {
      check_program(rows, [&](ir::Graph& g) {
        const Value x = input(g, "x", {kBatch, 40}), w = input(g, "w", {40, columns});
        return Values{relu(matmul(x, w) + input(g, "b", {columns}))};
      });
    }
  }
}

/// Sizes at which a GPU's threads take tiles of results, or its thread groups share terms, in parts
/// or not.
TEST(Schedule, SumsOfProductsByTiles) {
  check_program(3, [](ir::Graph& g) {
    const Value x = input(g, "x", {kBatch, 4, 12, 12}), w = input(g, "w", {16, 4, 3, 3});
    const Value y = conv2d(x, w), dy = input(g, "dy", {kBatch, 16, 10, 10});
    return Values{relu(y + input(g, "b", {16, 1, 1})),
                  internal::conv2d_grad_input(dy, w, {.input = x.type()}),
                  internal::conv2d_grad_filter(x, dy, {.filter = w.type()})};
  });
  check_program(6, [](ir::Graph& g) {
    const Value a = input(g, "a", {kBatch, 36}), b = input(g, "b", {36, 2048});
    return Values{matmul(a, b) * input(g, "c", {2048})};
  });
  check_program(5, [](ir::Graph& g) {  // cut into parts
    const Value x = input(g, "x", {1990, 24}), y = input(g, "y", {1990, 10});
    const Value a = input(g, "a", {kBatch, 600}), b = input(g, "b", {16, 600});
    return Values{input(g, "w", {24, 10}) - matmul(x, y, {.transpose_a = true}) * 0.5,
                  tanh(matmul(a, b, {.transpose_b = true})), sum(x, {.axes = 0})};
  });
}

TEST(Schedule, Convolutions) {
  for (int64_t stride : {1, 2}) {
    check_program(3, [&](ir::Graph& g) {
      const Value x = input(g, "x", {kBatch, 3, 11, 11}), w = input(g, "w", {7, 3, 5, 5});
      const Value y = conv2d(x, w, {.stride = stride, .padding = 2});
      const Value dy = input(g, "dy", y.shape());
      return Values{
          relu(y + input(g, "b", {7, 1, 1})),
          internal::conv2d_grad_input(dy, w, {.stride = stride, .padding = 2, .input = x.type()}),
          internal::conv2d_grad_filter(x, dy,
                                       {.stride = stride, .padding = 2, .filter = w.type()})};
    });
  }
}

TEST(Schedule, Pools) {
  struct Case {
    int64_t size, kernel, stride, padding;
  };
  for (const Case& c : {Case{30, 2, 2, 0}, {11, 2, 2, 0}, {13, 3, 2, 1}, {9, 3, 3, 0}}) {
    check_program(3, [&](ir::Graph& g) {
      const Value x = input(g, "x", {kBatch, 3, c.size, c.size});
      const Value y =
          max_pool2d(x, {.kernel = {c.kernel}, .stride = {c.stride}, .padding = {c.padding}});
      const Value position(y.op(), 1);
      const Value dx = internal::max_pool2d_grad(
          tanh(y), position,
          {.kernel = {c.kernel}, .stride = {c.stride}, .padding = {c.padding}, .input = x.type()});
      return Values{y, dx, relu(dx - 0.5)};
    });
  }
}

TEST(Schedule, SinglePrecisionAndHalves) {
  for (DType dtype : {f32, f16, bf16}) {
    const double tolerance = dtype == f32 ? 1e-5 : 2e-2;
    check_program(
        17,
        [&](ir::Graph& g) {
          const Value x = input(g, "x", {kBatch, 21}, dtype);
          return Values{softmax(x), sum(x, {.axes = 0}), relu(x) * x};
        },
        tolerance);
  }
}

Shape pixels_by(int64_t columns) { return {kBatch, 20, columns}; }

void check_columns(int64_t columns, DType dtype, int64_t batch, double tolerance) {
  SCOPED_TRACE(std::to_string(columns) + " columns, batch " + std::to_string(batch));
  check_program(
      batch,
      [&](ir::Graph& g) {
        const Value x = input(g, "x", pixels_by(columns), dtype);
        const Value row = input(g, "row", {columns}, dtype);
        const Value y = sum(x * row, {.axes = {0, 1}});
        return Values{y, y * 2.0, max(x, {.axes = {0, 1}}), relu(x - row)};
      },
      tolerance);
}

/// One value, one vector and several vectors with and without a rest, and more vectors than
/// accumulators fit in registers; batches of one and of many blocks.
TEST(Schedule, ManyRowsToColumns) {
  for (const int64_t columns : {1, 16, 72, 500}) {
    for (const int64_t batch : {1, 90}) check_columns(columns, f32, batch, 1e-4);
  }
  check_columns(24, f64, 90, 1e-12);
  check_columns(72, bf16, 90, 2e-2);
}

/// The variance reads the mean of all rows, so it is a kernel of its own.
TEST(Schedule, MomentsOfColumns) {
  EXPECT_EQ(2, check_program(40, [](ir::Graph& g) {
              const Value x = input(g, "x", pixels_by(24));
              const Value mean_of_x = mean(x, {.axes = {0, 1}});
              return Values{mean_of_x, mean(square(x - mean_of_x), {.axes = {0, 1}})};
            }));
}

/// Threads divide the rows, however few the columns.
TEST(Schedule, ColumnSumsHaveManyBlocks) {
  ir::Program program("p");
  ir::Graph& g = program.main();
  const Value x = input(g, "x", pixels_by(8), f32);
  g.outputs.push_back({"y", sum(x, {.axes = {0, 1}})});
  fuse_pass().run(program, {}, PlainTarget());
  outline_pass().run(program, {}, PlainTarget());
  const ir::Op& fused = *g.outputs.front().value.op();
  ASSERT_EQ(fused.name, "fused");
  const ir::Graph& body = *program.find(fused.attrs.get<GraphRef>("body").name);
  EXPECT_GE(kir::evaluate(schedule(body, "k").blocks, 6400), 16);
}

/// A random graph of maps and reductions over [?, a, b].
Values random_graph(ir::Graph& g, uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::vector<int64_t> extents = {1, 2, 3, 10, 17, 40};
  const Dim a = extents[random() % extents.size()], b = extents[random() % extents.size()];
  Values pool = {input(g, "x", {kBatch, a, b}), input(g, "y", {kBatch, a, b}),
                 input(g, "row", {a, b}), input(g, "s", {1, 1})};
  auto any = [&] { return pool[random() % pool.size()]; };
  for (int i = 0; i < 9; ++i) {
    const Value x = any();
    const auto axis = static_cast<int64_t>(random() % static_cast<uint64_t>(x.shape().rank()));
    switch (random() % 9) {
      case 0:
        pool.push_back(tanh(x));
        break;
      case 1:
        pool.push_back(sigmoid(x));
        break;
      case 2:
        pool.push_back(tanh(any() + x));
        break;
      case 3:
        pool.push_back(sigmoid(any() * x));
        break;
      case 4:
        pool.push_back(maximum(any(), x));
        break;
      case 5:
        pool.push_back(tanh(sum(x, {.axes = axis, .keep_dims = true})));
        break;
      case 6:
        pool.push_back(max(x, {.axes = axis, .keep_dims = true}));
        break;
      case 7:
        pool.push_back(mean(x, {.axes = axis, .keep_dims = true}));
        break;
      default:
        pool.push_back(sqrt(sum(x * x, {.axes = {-1, -2}, .keep_dims = true})));
        break;
    }
  }
  Values outputs(pool.end() - 3, pool.end());
  return outputs;
}

TEST(Schedule, RandomGraphs) {
  const uint64_t graphs = testing::is_full_run() ? 200 : 20;
  for (uint64_t seed = 0; seed < graphs && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const int64_t batch = std::array<int64_t, 4>{1, 4, 19, 130}[seed % 4];
    check_program(
        batch, [&](ir::Graph& g) { return random_graph(g, seed); }, 1e-11, seed);
  }
}

}  // namespace
}  // namespace fluid::schedule_test
