#include "ops/record.h"

#include <gtest/gtest.h>

#include "ops/nn/global_pool.h"
#include "ops/operators.h"
#include "tests/support/facts.h"

namespace fluid::record_test {
namespace {

std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

class Record : public ::testing::Test {
 protected:
  Value feed(const std::string& name, Type type) {
    return record_source(program_.main(), "data", name, std::move(type), {}, Loc{"net.cpp", 7});
  }
  ir::Program program_{"p"};
};

TEST_F(Record, BuildsLinearLayer) {
  const Value x = feed("x", {f32, {kBatch, 784}, {}});
  const Value w = feed("w", {f32, {784, 10}, {}});
  const Value y = relu(matmul(x, w) + 1.0);
  EXPECT_EQ(y.type().str(), "f32[?, 10]");
  EXPECT_EQ(sum(y, {.axes = -1}).type().str(), "f32[?]");
  EXPECT_EQ(sum(y, {.axes = {0}, .keep_dims = true}).type().str(), "f32[1, 10]");
  EXPECT_EQ(sum(y).type().str(), "f32[]");
  EXPECT_EQ(reshape(y, {-1, 5, 2}).type().str(), "f32[?, 5, 2]");
  EXPECT_EQ(reshape(reshape(y, {-1, 5}), {-1, 2, 5}).type().str(), "f32[?, 2, 5]");
}

TEST_F(Record, NamesTheMistakeAndTheLine) {
  const Loc here{"net.cpp", 9};
  const Value x = feed("x", {f32, {kBatch, 3}, {}});
  const Value wide = feed("wide", {f32, {Dim::of_batch(256), 3}, {}});
  const Value ints = feed("ints", {i64, {3}, {}});
  EXPECT_TRUE(
      states(error_of([&] { add(x, wide, here); }),
             "net.cpp:9: add: cannot broadcast f32[?, 3] and f32[256?, 3]: dimension 0 is both ? "
             "and 256?"));
  EXPECT_TRUE(states(
      error_of([&] { add(x, ints, here); }),
      "net.cpp:9: add: operands of different dtypes, f32[?, 3] and i64[3]: cast one of them"));
  EXPECT_TRUE(states(error_of([&] { exp(ints, here); }),
                     "net.cpp:9: exp: the operand must be a float tensor, not i64[3]"));
  EXPECT_TRUE(states(error_of([&] { sum(x, {.axes = 2}, here); }),
                     "net.cpp:9: sum: axis 2 is out of range for f32[?, 3] of rank 2"));
  EXPECT_TRUE(states(error_of([&] {
                       sum(x, {.axes = {0, -2}}, here);
                     }),
                     "net.cpp:9: sum: axis 0 is given twice"));
  EXPECT_TRUE(
      states(error_of([&] { add(x, Value(), here); }), "net.cpp:9: add: an operand is null"));
  EXPECT_TRUE(states(error_of([&] { matmul(x, x, {.transpose_b = true}, here); }),
                     "net.cpp:9: matmul: shape [?, ?] has two batch dimensions"));
  EXPECT_TRUE(states(error_of([&] {
                       feed("x", {f32, {}, {}});
                     }),
                     "net.cpp:7: data: the name 'x' is taken by the data of net.cpp:7"));
  EXPECT_TRUE(states(error_of([&] { record(program_.main(), "rellu", {x}, {}, here); }),
                     "net.cpp:9: no op 'rellu' (did you mean 'relu'?)"));
  EXPECT_TRUE(states(error_of([&] { record(program_.main(), "flat", {x}, {}, here); }),
                     "net.cpp:9: no op 'flat' (did you mean 'flatten'?)"));
  EXPECT_TRUE(states(error_of([&] {
                       record(program_.main(), "relu", {x, x}, {}, here);
                     }),
                     "net.cpp:9: relu: takes operands (x), not 2"));
  EXPECT_TRUE(states(error_of([&] {
                       record(program_.main(), "sum", {x}, {{"axis", int64_t{1}}}, here);
                     }),
                     "net.cpp:9: sum: no attribute 'axis' (did you mean 'axes'?)"));
  EXPECT_TRUE(states(error_of([&] {
                       record(program_.main(), "sum", {x}, {{"axes", true}}, here);
                     }),
                     "net.cpp:9: sum: attribute 'axes' must be of kind list of ints, not bool"));
  EXPECT_TRUE(
      states(error_of([&] { record(program_.main(), "cast", {x}, {}, here); }),
             "net.cpp:9: cast: needs attribute 'to' (gives the dtype of the result; its shape is "
             "ignored)"));
  ir::Program other("q");
  EXPECT_TRUE(states(error_of([&] { record(other.main(), "relu", {x}, {}, here); }),
                     "net.cpp:9: relu: an operand belongs to another program"));
}

TEST_F(Record, NamesMistakesOfShortSpellings) {
  const Loc here{"net.cpp", 9};
  const Value x = feed("x", {f32, {2, 3}, {}});
  const std::string extents = "net.cpp:9: reshape: extents are 0 or more, and at most one is -1";
  EXPECT_EQ(error_of([&] { reshape(x, {-1, -1}, here); }), extents);
  EXPECT_EQ(error_of([&] { reshape(x, {-2, 3}, here); }), extents);
  EXPECT_TRUE(states(error_of([&] {
                       reshape(x, {-1, 4}, here);
                     }),
                     "net.cpp:9: reshape: f32[2, 3] has 6 elements, [6, 4] has 24"));
  EXPECT_TRUE(states(error_of([&] { concat({}, {}, here); }),
                     "net.cpp:9: concat: needs at least one operand"));
}

TEST_F(Record, OperatorsNameTheLineTheyStandIn) {
  const Value x = feed("x", {f32, {2, 3}, {}}), wide = feed("wide", {f32, {2, 4}, {}});
  const int line = __LINE__;
  const std::vector<std::string> errors = {
      error_of([&] { x + wide; }),
      error_of([&] { wide - x; }),
      error_of([&] { cast(x, boolean) + 1.0; }),
      error_of([&] { cast(x, i32) * 0.5; }),
      error_of([&] { -cast(x, boolean); }),
  };
  const std::vector<std::string> wanted = {
      "add: cannot broadcast f32[2, 3] and f32[2, 4]: dimension 1 is both 3 and 4",
      "sub: cannot broadcast f32[2, 4] and f32[2, 3]: dimension 1 is both 4 and 3",
      "add: operand 0 must be a numeric tensor, not bool[2, 3]",
      "fill: attribute 'value' is not representable in i32: 0.5",
      "neg: the operand must be a numeric tensor, not bool[2, 3]",
  };
  for (size_t i = 0; i < wanted.size(); ++i) {
    const Loc at{"record_test.cpp", line + 2 + static_cast<int>(i)};
    EXPECT_EQ(errors[i], at.str() + ": " + wanted[i]);
  }
  const Loc next{"record_test.cpp", __LINE__ + 1};
  const Values results = {x + x, x - x, x * x, x / x, x + 1, x - 1, x * 2, x / 2, 1 + x, 1 / x, -x};
  for (const Value& v : results) EXPECT_EQ(v.op()->loc.str(), next.str()) << v.op()->name;
}

TEST_F(Record, APassPlacesWhatItRecords) {
  const Value x = feed("x", {f32, {2, 3}, {}}), wide = feed("wide", {f32, {2, 4}, {}});
  {
    const ir::ScopedRecording as(
        program_.main(),
        {.role = ir::Role::backward, .loc = Loc{"net.cpp", 9}, .scope = "", .param = ""});
    EXPECT_EQ((x * 2.0).op()->loc.str(), "net.cpp:9");
    EXPECT_EQ(error_of([&] { add(x, wide); }).substr(0, 15), "net.cpp:9: add:");
  }
  const ir::ScopedRecording nowhere(
      program_.main(), {.role = ir::Role::backward, .loc = Loc{}, .scope = "", .param = ""});
  EXPECT_EQ((x * 2.0).op()->loc.str(), "");
  EXPECT_EQ(error_of([&] { add(x, wide); }).substr(0, 4), "add:");
}

TEST_F(Record, PoolsWholePlanes) {
  const Value x = feed("x", {f32, {kBatch, 5, 7, 9}, {}});
  EXPECT_EQ(global_avg_pool2d(x).type().str(), "f32[?, 5, 1, 1]");
  EXPECT_EQ(global_max_pool2d(x).type().str(), "f32[?, 5, 1, 1]");
}

TEST_F(Record, PoolsAllSpatialDimensions) {
  const Value x = feed("x", {f32, {kBatch, 5, 7}, {}});
  const Value volume = feed("volume", {f32, {kBatch, 5, 7, 9, 2}, {}});
  EXPECT_EQ(global_avg_pool(x).type().str(), "f32[?, 5, 1]");
  EXPECT_EQ(global_max_pool(volume).type().str(), "f32[?, 5, 1, 1, 1]");
  EXPECT_EQ(global_lp_pool(volume, 3).type().str(), "f32[?, 5, 1, 1, 1]");
  EXPECT_TRUE(states(error_of([&] { global_avg_pool(Value()); }),
                     "global_avg_pool: the input is an empty value"));
  const Value flat = feed("flat", {f32, {kBatch, 5}, {}});
  EXPECT_TRUE(
      states(error_of([&] { global_lp_pool(flat); }),
             "global_lp_pool: the input is f32[?, 5], not [N, C, ...] with spatial dimensions"));
}

TEST_F(Record, RejectsVariablesThatCannotStart) {
  const auto declare = [&](const std::string& op, Type type, Attrs attrs) {
    return error_of([&] {
      record_source(program_.main(), op, "w", std::move(type), std::move(attrs), {"net.cpp", 9});
    });
  };
  const Type matrix = {f32, {2, 2}, {}};
  const auto init = [](const std::string& name) { return Attrs{{"init", name}}; };
  EXPECT_EQ(declare("param", matrix, init("normal_")),
            "net.cpp:9: 'w' asks for an unknown initialiser 'normal_' (did you mean 'normal'?)");
  EXPECT_EQ(declare("state", {f32, {3}, {}}, init("xavier_normal")),
            "net.cpp:9: this initialiser needs a weight of two or more dimensions, not [3]");
  EXPECT_EQ(declare("param", {f32, {kBatch}, {}}, {}),
            "net.cpp:9: param: the shape of a variable, [?], cannot depend on the batch");
  EXPECT_TRUE(program_.main().ops.empty());
}

TEST_F(Record, NamesMistakesOfATrainingRecipe) {
  const Loc here{"net.cpp", 9};
  const Value loss = feed("loss", {f32, {}, {}});
  const auto train = [&](const Value& value, Attrs attrs) {
    return error_of([&] { record(program_.main(), "train", {value}, std::move(attrs), here); });
  };
  const auto recipe = [](const std::string& optimizer, double lr) {
    return Attrs{{"optimizer", optimizer}, {"lr", lr}};
  };
  EXPECT_EQ(train(feed("rows", {f32, {kBatch}, {}}), recipe("sgd", 0.1)),
            "net.cpp:9: train: the loss must be a float scalar, got f32[?]; take its mean");
  EXPECT_EQ(train(loss, recipe("adm", 0.1)),
            "net.cpp:9: train: unknown optimizer 'adm' (did you mean 'adam'?)");
  EXPECT_EQ(train(loss, recipe("sdg", 0.1)),
            "net.cpp:9: train: unknown optimizer 'sdg' (did you mean 'sgd'?)");
  EXPECT_EQ(train(loss, recipe("relu", 0.1)), "net.cpp:9: train: unknown optimizer 'relu'");
  EXPECT_EQ(train(loss, recipe("sgd", -1)),
            "net.cpp:9: train: attribute 'lr' must be a number of 0.0 or more, not -1.0");
  Attrs wrong = recipe("momentum", 0.1);
  wrong.set("beta1", 0.9);
  EXPECT_EQ(train(loss, wrong), "net.cpp:9: momentum: no attribute 'beta1'");
  Attrs outside = recipe("adam", 0.1);
  outside.set("beta1", 2.0);
  EXPECT_EQ(train(loss, outside),
            "net.cpp:9: adam: attribute 'beta1' must lie in [0.0, 1.0), not be 2.0");
}

TEST_F(Record, ChecksOpsThatCameFromAFile) {
  const Value x = feed("x", {f32, {kBatch, 3}, {}});
  const Value y = relu(x, Loc{"a.fir", 2});
  verify_op(*y.op());
  y.op()->results[0].type.shape = {3};
  EXPECT_TRUE(states(
      error_of([&] { verify_op(*y.op()); }),
      "a.fir:2: relu: results are given as (f32[3]) but its operands make them (f32[?, 3])"));
}

TEST(Table, HasNoFaults) {
  for (const std::string& fault : op_table_errors(op_table())) ADD_FAILURE() << fault;
}

}  // namespace
}  // namespace fluid::record_test
