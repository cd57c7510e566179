#include <gtest/gtest.h>

#include "ops/record.h"
#include "tests/support/errors.h"

namespace fluid::all_reduce_test {
namespace {

TEST(AllReduce, TakesFloatsOfOneDtypeAndKnownSize) {
  ir::Program program("p");
  ir::Graph& graph = program.main();
  const auto source = [&](const char* name, DType dtype, Shape shape) {
    return record_source(graph, "data", name, Type{dtype, std::move(shape), {}}, {}, {});
  };
  const Value a = source("a", f32, {3}), b = source("b", f32, {}), wide = source("c", f64, {3}),
              batched = source("d", f32, {kBatch, 3}), count = source("e", i64, {});
  const Values sums = record(graph, "all_reduce", {a, b}, {}, {});
  ASSERT_EQ(sums.size(), 2U);
  EXPECT_EQ(sums[0].type(), a.type());
  EXPECT_EQ(sums[1].type(), b.type());
  const std::string expects =
      "all_reduce: expects float tensors of one dtype without a batch dimension, got ";
  for (const auto& [operands, type] : {std::pair{Values{a, wide}, "f64[3]"},
                                       {Values{batched}, "f32[?, 3]"},
                                       {Values{count}, "i64[]"}}) {
    expect_user_error([&] { record(graph, "all_reduce", operands, {}, {}); }, expects + type);
  }
}

}  // namespace
}  // namespace fluid::all_reduce_test
