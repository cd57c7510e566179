// Loops over concatenated and padded tensors are split: each part reads what it needs.

#include <gtest/gtest.h>

#include "codegen/schedule.h"
#include "ops/functions.h"
#include "ops/operators.h"
#include "passes/pass_table.h"
#include "tests/support/fused_runner.h"
#include "tests/support/plain_target.h"

namespace fluid::split_loops_test {
namespace {

using Build = std::function<Value(ir::Graph&)>;

Value input(ir::Graph& g, const std::string& name, Shape shape) {
  return record_source(g, "data", name, {f32, std::move(shape), {}}, {}, {});
}

int occurrences(const std::string& text, const std::string& word) {
  int n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

/// Checks the results of the program, which becomes one kernel. Returns the kernel's text.
std::string check(const Build& build) {
  ir::Program program("p");
  program.main().outputs.push_back({"y", build(program.main())});
  EXPECT_EQ(1, testing::expect_fused_as_interpreted(program, 3, 1e-6));
  fuse_pass().run(program, {}, PlainTarget());
  outline_pass().run(program, {}, PlainTarget());
  for (const auto& op : program.main().ops) {
    if (op->name != "fused") continue;
    return kir::print(schedule(*program.find(op->attrs.get<GraphRef>("body").name), "k"));
  }
  return {};
}

TEST(SplitLoops, EachOperandOfAConcatenationHasALoop) {
  for (const int64_t axis : {1, 2}) {
    const std::string text = check([&](ir::Graph& g) {
      Values parts;
      for (const int64_t n : {3, 1, 40, 16, 7}) {
        const Shape shape = axis == 1 ? Shape{kBatch, n, 5} : Shape{kBatch, 5, n};
        parts.push_back(input(g, "x" + std::to_string(n), shape) * 2.0);
      }
      return concat(parts, {.axis = axis});
    });
    EXPECT_EQ(occurrences(text, "mul:f32(in"), 5) << text;  // one load per loop
  }
}

/// As in the gradient of slices of one tensor.
TEST(SplitLoops, SumsOfPaddedRows) {
  const std::string text = check([](ir::Graph& g) {
    Value sum;
    for (int64_t i = 1; i < 9; ++i) {
      const Value row = input(g, "x" + std::to_string(i), {kBatch, 1, i});
      const Value padded = pad(row, {.low = Ints{0, i, 0}, .high = Ints{0, 8 - i, 9 - i}});
      sum = sum ? sum + padded : padded;
    }
    return sum;
  });
  EXPECT_EQ(occurrences(text, "] = "), 9) << text;      // rows, of which the first has no operand
  EXPECT_EQ(occurrences(text, "add:f32("), 8) << text;  // each other row adds its operand to zero
}

TEST(SplitLoops, ComparisonsOfAllSlopes) {
  check([](ir::Graph& g) {
    const Value x = input(g, "x", {kBatch, 33});
    return flip(concat({x, flip(x, {.axes = 1}), x * x, x + 1.0}, {.axis = 1}), {.axes = 1});
  });
}

Value numbers(ir::Graph& g, int64_t count, double start = 0) {
  return arange(g, {.type = Type{i64, {count}, {}}, .start = start});
}

/// Selects between a concatenation of two inputs and zero.
Value concatenation_where(ir::Graph& g, Value condition) {
  const int64_t half = condition.shape()[0].size / 2;
  const Value x = input(g, "x", {kBatch, half}), y = input(g, "y", {kBatch, half});
  const Value joined = concat({x, y}, {.axis = 1});
  return where(condition, joined, scalar_like(joined, 0));
}

/// The compared index restarts at each operand. In a part of the loop it is linear.
TEST(SplitLoops, ComparisonsThatChangeWithinAPart) {
  check([](ir::Graph& g) {
    const Value i = numbers(g, 64), again = concat({i, i}, {.axis = 0});
    return concatenation_where(g, less(again, scalar_like(again, 5)));
  });
  check([](ir::Graph& g) {
    const Value i = numbers(g, 128);
    const Value start = where(less(i, scalar_like(i, 64)), scalar_like(i, 0), scalar_like(i, 64));
    return concatenation_where(g, equal(i - start, scalar_like(i, 7)));
  });
}

/// Integers wrap around, so these comparisons change more than twice.
TEST(SplitLoops, ComparisonsOfIntegersThatOverflow) {
  check([](ir::Graph& g) {
    const Value i = numbers(g, 1024), hash = i * 6364136223846793216.0;
    return concatenation_where(g, greater(hash, scalar_like(i, 0)));
  });
  check([](ir::Graph& g) {
    const Value i = numbers(g, 128), large = i + 0x1p62 + (0x1p62 - 1024) + 960.0;
    return concatenation_where(g, greater(large, scalar_like(i, 0)));
  });
}

}  // namespace
}  // namespace fluid::split_loops_test
