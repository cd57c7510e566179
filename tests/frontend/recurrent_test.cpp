// Recurrent layers: their parameters, their types, and what they reject. Their numbers are compared
// with PyTorch's in e2e.Recurrent.

#include "frontend/recurrent.h"

#include <gtest/gtest.h>

#include <cmath>

#include "frontend/fluid.h"
#include "tests/support/errors.h"
#include "tests/support/parameters_of.h"

namespace fluid::recurrent_test {
namespace {

using Names = std::vector<std::string>;

const Loc kAt{"net.cpp", 7};

TEST(Recurrent, AddsParametersForEachLayerAndDirection) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 5, 3}, f32);
  const RecurrentResult result = lstm(x, {.units = 4, .layers = 2, .bidirectional = true});
  EXPECT_EQ(result.output.type(), (Type{f32, {kBatch, 5, 8}, {}}));
  ASSERT_EQ(result.states.size(), 8u);
  for (const Value& v : result.states) EXPECT_EQ(v.type(), (Type{f32, {kBatch, 4}, {}}));
  EXPECT_EQ(parameters_of(net),
            (Names{"lstm0.layer0.w f32[16, 3]", "lstm0.layer0.u f32[16, 4]",
                   "lstm0.layer0.b f32[16]", "lstm0.layer0.reverse.w f32[16, 3]",
                   "lstm0.layer0.reverse.u f32[16, 4]", "lstm0.layer0.reverse.b f32[16]",
                   "lstm0.layer1.w f32[16, 8]", "lstm0.layer1.u f32[16, 4]",
                   "lstm0.layer1.b f32[16]", "lstm0.layer1.reverse.w f32[16, 8]",
                   "lstm0.layer1.reverse.u f32[16, 4]", "lstm0.layer1.reverse.b f32[16]"}));
}

TEST(Recurrent, GruHasABiasThatTheResetGateScales) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 5, 3}, f64);
  gru(x, {.units = 4});
  gru(x, {.units = 4, .bias = false});
  EXPECT_EQ(parameters_of(net), (Names{"gru0.layer0.w f64[12, 3]", "gru0.layer0.u f64[12, 4]",
                                       "gru0.layer0.b f64[12]", "gru0.layer0.c f64[4]",
                                       "gru1.layer0.w f64[12, 3]", "gru1.layer0.u f64[12, 4]"}));
}

TEST(Recurrent, LayersTakeNamesAndInitialStates) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 5, 3}, f32), h = net.data("h", {kBatch, 4}, f32);
  const RecurrentResult result = rnn(x, {.units = 4, .initial = {h}, .name = "encoder"});
  EXPECT_EQ(result.output.type(), (Type{f32, {kBatch, 5, 4}, {}}));
  EXPECT_EQ(result.states.size(), 1u);
  EXPECT_EQ(parameters_of(net), (Names{"encoder.layer0.w f32[4, 3]", "encoder.layer0.u f32[4, 4]",
                                       "encoder.layer0.b f32[4]"}));
}

TEST(Recurrent, RejectsWrongInputs) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 5, 3}, f32), flat = net.data("flat", {kBatch, 3}, f32);
  const Value text = net.data("text", {kBatch, 5, 3}, i64);
  const Value empty = net.data("empty", {kBatch, 0, 3}, f32);
  const Value time_first = net.data("t", {5, kBatch, 3}, f32);
  const auto expect = [](const std::string& message, const auto& f) {
    expect_user_error(f, "net.cpp:7: " + message);
  };
  expect("rnn: the input is an empty value", [&] { rnn(Value(), {.units = 4}, kAt); });
  expect("gru: the input is f32[?, 3], not a float [N, T, features]",
         [&] { gru(flat, {.units = 4}, kAt); });
  expect("lstm: the input is i64[?, 5, 3], not a float [N, T, features]",
         [&] { lstm(text, {.units = 4}, kAt); });
  expect("lstm: the input is f32[5, ?, 3], not a float [N, T, features]",
         [&] { lstm(time_first, {.units = 4}, kAt); });
  expect("rnn: the sequences of f32[?, 0, 3] are empty", [&] { rnn(empty, {.units = 4}, kAt); });
  expect("rnn: units is 0 and layers is 1; both must be positive",
         [&] { rnn(x, {.units = 0}, kAt); });
  expect("gru: units is 4 and layers is 0; both must be positive",
         [&] { gru(x, {.units = 4, .layers = 0}, kAt); });
  expect("gru: only rnn has the option relu", [&] { gru(x, {.units = 4, .relu = true}, kAt); });
  expect("lstm: only rnn has the option relu", [&] { lstm(x, {.units = 4, .relu = true}, kAt); });
  expect("lstm: dropout must lie between 0 and 1, not be 1.5",
         [&] { lstm(x, {.units = 4, .dropout = 1.5}, kAt); });
  expect("gru: dropout must lie between 0 and 1, not be nan",
         [&] { gru(x, {.units = 4, .layers = 2, .dropout = NAN}, kAt); });
}

/// The random streams of the dropouts of a program.
std::vector<int64_t> dropout_streams(Program& net) {
  std::vector<int64_t> streams;
  for (const auto& op : net.ir().main().ops) {
    if (op->name == "dropout") streams.push_back(op->attrs.get<int64_t>("stream"));
  }
  return streams;
}

TEST(Recurrent, DropsTheOutputOfEachLayerExceptTheLast) {
  for (const bool bidirectional : {false, true}) {
    Program net("net");
    const Value x = net.data("x", {kBatch, 5, 3}, f32);
    const Recurrent layer = {
        .units = 4, .layers = 3, .bidirectional = bidirectional, .dropout = 0.5};
    lstm(x, layer);
    const std::vector<int64_t> streams = dropout_streams(net);
    ASSERT_EQ(streams.size(), 2u);
    EXPECT_NE(streams[0], streams[1]);
  }
  Program net("net");
  const Value x = net.data("x", {kBatch, 5, 3}, f32);
  gru(x, {.units = 4, .dropout = 0.5});
  rnn(x, {.units = 4, .layers = 2});
  EXPECT_TRUE(dropout_streams(net).empty());
}

TEST(Recurrent, RejectsWrongInitialStates) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 5, 3}, f32), h = net.data("h", {kBatch, 4}, f32);
  const Value doubles = net.data("doubles", {kBatch, 4}, f64), one = net.data("one", {1, 4}, f32);
  const auto expect = [&](const std::string& message, const Recurrent& layer) {
    expect_user_error([&] { lstm(x, layer, kAt); }, "net.cpp:7: lstm: " + message);
  };
  expect("1 initial states are given for 2", {.units = 4, .initial = {h}});
  expect("2 initial states are given for 8",
         {.units = 4, .layers = 2, .bidirectional = true, .initial = {h, h}});
  expect("an initial state is f64[?, 4], not f32[?, 4]", {.units = 4, .initial = {h, doubles}});
  expect("an initial state is f32[1, 4], not f32[?, 4]", {.units = 4, .initial = {one, h}});
  expect("an initial state is f32[?, 4], not f32[?, 6]", {.units = 6, .initial = {h, h}});
  expect("an initial state is empty, not f32[?, 4]", {.units = 4, .initial = {h, Value()}});
}

TEST(Recurrent, RejectsWrongLengths) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 5, 3}, f32);
  const auto expect = [&](const std::string& message, Value lengths) {
    expect_user_error([&] { rnn(x, {.units = 4, .lengths = lengths}, kAt); },
                      "net.cpp:7: rnn: the lengths are " + message + ", not integers [?]");
  };
  expect("f32[?]", net.data("floats", {kBatch}, f32));
  expect("i64[?, 1]", net.data("columns", {kBatch, 1}, i64));
  expect("i32[2]", net.data("constant", {2}, i32));
  expect("empty", Value());
}

/// Predicts with an rnn over two sequences of `steps` steps, which is the extent `recorded` of the
/// program. Returns its output at the last step of the second sequence.
double last_output(Dim recorded, int64_t steps, const Tensor& lengths) {
  Program net("net");
  const Value x = net.data("x", {2, recorded, 3}, f32), n = net.data("n", {2}, lengths.dtype());
  net.output("y", rnn(x, {.units = 4, .lengths = n}).output);
  Executor exe(net, cpu());
  const Tensor y = exe.predict({{"x", Tensor(f32, {2, steps, 3})}, {"n", lengths}})["y"].copy();
  return y.at(y.numel() - 1);
}

TEST(Recurrent, RejectsLengthsOutsideTheSequences) {
  const auto predict = [](Dim recorded, int64_t length) {
    return last_output(recorded, 5, Tensor::of<int64_t>({2}, std::vector<int64_t>{3, length}));
  };
  for (const Dim recorded : {Dim(5), Dim(kLength)}) {
    EXPECT_EQ(predict(recorded, 0), 0);
    EXPECT_EQ(predict(recorded, 4), 0);
    EXPECT_NE(predict(recorded, 5), 0);
  }
  for (const int64_t length : {-1, 6, 100}) {
    expect_user_error([&] { predict(5, length); }, "in rnn0: value " + std::to_string(length) +
                                                       " of feed 'n' is out of range [0, 6)");
  }
  expect_user_error([&] { predict(kLength, -1); }, "in rnn0: index -1 is out of range [0, 5)");
  expect_user_error([&] { predict(kLength, 6); }, "in rnn0: index 5 is out of range [0, 5)");
}

TEST(Recurrent, TakesLengthsOfSmallIntegers) {
  for (const DType dtype : {u8, i8}) EXPECT_EQ(last_output(300, 300, Tensor(dtype, {2})), 0);
}

}  // namespace
}  // namespace fluid::recurrent_test
