#include "ops/op_kinds.h"

#include <gtest/gtest.h>

#include "ops/functions.h"
#include "ops/operators.h"
#include "ops/record.h"

namespace fluid::op_kinds_test {
namespace {

class OpKindsTest : public ::testing::Test {
 protected:
  Value input(const Shape& shape, DType dtype = f32) {
    return record_source(program_.main(), "data", "x" + std::to_string(inputs_++),
                         {dtype, shape, {}}, {}, {});
  }
  bool same(Value a, Value b) { return kinds_.kind_id(*a.op()) == kinds_.kind_id(*b.op()); }
  GroupKey key(const Values& ops, const Values& outputs) {
    std::vector<const ir::Op*> members;
    for (const Value& v : ops) members.push_back(v.op());
    return group_key(members, outputs, kinds_);
  }

  ir::Program program_{"p"};
  int inputs_ = 0;
  OpKinds kinds_;
};

TEST_F(OpKindsTest, AreOfNameAttributesAndTypes) {
  const Value a = input({kBatch, 3}), b = input({kBatch, 3}), wide = input({kBatch, 4});
  const Value fixed = input({3, 3}), doubles = input({kBatch, 3}, f64);
  EXPECT_TRUE(same(exp(a), exp(b)));
  EXPECT_TRUE(same(sum(a, {.axes = 1}), sum(b, {.axes = 1})));
  EXPECT_FALSE(same(exp(a), neg(a)));
  EXPECT_FALSE(same(exp(a), exp(wide)));
  EXPECT_FALSE(same(exp(a), exp(fixed)));
  EXPECT_FALSE(same(exp(a), exp(doubles)));
  EXPECT_FALSE(same(sum(a, {.axes = 1}), sum(a, {.axes = 0})));
  EXPECT_FALSE(same(sum(a, {.axes = 1}), sum(a, {.axes = 1, .keep_dims = true})));
  EXPECT_FALSE(same(scalar_like(a, 2), scalar_like(a, 3)));
  EXPECT_FALSE(same(scalar_like(a, 0.0), scalar_like(a, -0.0)));
  EXPECT_FALSE(same(greater(a, b), a + b)) << "by their results";
}

TEST_F(OpKindsTest, TellGroupsByWhatTheyReadAndYield) {
  const Value a = input({kBatch, 3}), b = input({kBatch, 3});
  const Value ea = exp(a), eb = exp(b);
  const Value square = ea * ea, product = ea * b, other = eb * a, twice = eb * eb;
  EXPECT_EQ(key({ea, square}, {square}), key({eb, twice}, {twice}));
  EXPECT_EQ(key({ea, product}, {product}), key({eb, other}, {other}));
  EXPECT_NE(key({ea, square}, {square}), key({ea, product}, {product}));
  EXPECT_NE(key({ea, square}, {square}), key({ea, square}, {ea, square}));
  EXPECT_NE(key({ea, square}, {square}), key({square}, {square}));
  const Value same_read = a + a, two_reads = a + b;
  EXPECT_NE(key({same_read}, {same_read}), key({two_reads}, {two_reads}));
}

}  // namespace
}  // namespace fluid::op_kinds_test
