// Recording with the dimension kLength: every op infers the types that it infers for constants.

#include "ir/length.h"

#include <gtest/gtest.h>

#include <functional>
#include <ostream>

#include "frontend/ctc_loss.h"
#include "frontend/fluid.h"
#include "ops/record.h"
#include "passes/set_length.h"
#include "tests/support/errors.h"

namespace fluid::length_test {
namespace {

/// The feeds of a program whose sequences have `length` elements.
struct Feeds {
  explicit Feeds(Dim length) : net("net"), length(length) {}
  Value feed(const Shape& shape, DType dtype = f32) {
    return net.data("feed" + std::to_string(count++), shape, dtype);
  }
  Value parameter(const Shape& shape) {
    return net.parameter("w" + std::to_string(count++), shape, Init::zeros());
  }
  Value sequence() { return feed({kBatch, length, 6}); }
  Value text() { return feed({kBatch, length}, u8); }
  Value heads(int64_t n) { return feed({kBatch, n, length, 4}); }
  Value channels() { return feed({kBatch, 2, length}); }
  ir::Graph& graph() { return net.ir().main(); }

  Program net;
  Dim length;
  int count = 0;
};

struct Case {
  const char* name;
  std::function<Value(Feeds&)> record;
  const char* type;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

Value scanned(Feeds& f, int64_t result, bool reverse) {
  const Value x = transpose(f.sequence(), {.perm = {1, 0, 2}});
  const Value start = fill(f.graph(), {.type = Type{f32, {kBatch, 6}, {}}, .value = 0});
  const auto body = [](const Values& carries, const Values& elements) {
    const Value next = carries[0] + elements[0];
    return ScanStep{.carries = {next}, .collected = {square(next)}};
  };
  const ScanResult all = scan({start}, {x}, body, {.reverse = reverse});
  return result == 0 ? all.carries[0] : all.collected[0];
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"map", [](Feeds& f) { return gelu(f.sequence()) * 2.0; }, "f32[?, L, 6]"},
      {"broadcast",
       [](Feeds& f) {
         return f.sequence() + f.feed({f.length, 1});
       },
       "f32[?, L, 6]"},
      {"outer",
       [](Feeds& f) {
         return f.feed({f.length, 1}) + f.feed({f.length});
       },
       "f32[L, L]"},
      {"where", [](Feeds& f) { return where(greater(f.text(), f.text()), f.text(), f.text()); },
       "u8[?, L]"},
      {"cast", [](Feeds& f) { return cast(f.text(), i64); }, "i64[?, L]"},
      {"matmul",
       [](Feeds& f) {
         return matmul(f.sequence(), f.parameter({6, 3}));
       },
       "f32[?, L, 3]"},
      {"scores", [](Feeds& f) { return matmul(f.heads(2), f.heads(2), {.transpose_b = true}); },
       "f32[?, 2, L, L]"},
      {"einsum",
       [](Feeds& f) {
         return einsum({f.heads(2), f.heads(2)}, {.equation = "nhqd,nhkd->nqkh"});
       },
       "f32[?, L, L, 2]"},
      {"bilinear",
       [](Feeds& f) {
         return bilinear(f.sequence(), f.sequence(), f.parameter({3, 6, 6}));
       },
       "f32[?, L, 3]"},
      {"softmax along it", [](Feeds& f) { return softmax(f.sequence(), {.axis = 1}); },
       "f32[?, L, 6]"},
      {"log_softmax", [](Feeds& f) { return log_softmax(f.sequence()); }, "f32[?, L, 6]"},
      {"layer_norm", [](Feeds& f) { return layer_norm(f.sequence()); }, "f32[?, L, 6]"},
      {"rms_norm", [](Feeds& f) { return rms_norm(f.sequence()); }, "f32[?, L, 6]"},
      {"batch_norm", [](Feeds& f) { return batch_norm(f.channels()); }, "f32[?, 2, L]"},
      {"group_norm", [](Feeds& f) { return group_norm(f.channels(), {.groups = 2}); },
       "f32[?, 2, L]"},
      {"dropout", [](Feeds& f) { return dropout(f.sequence(), {.p = 0.5}); }, "f32[?, L, 6]"},
      {"linear", [](Feeds& f) { return linear(f.sequence(), {.units = 4}); }, "f32[?, L, 4]"},
      {"sum", [](Feeds& f) { return sum(f.sequence(), {.axes = 1}); }, "f32[?, 6]"},
      {"mean",
       [](Feeds& f) {
         return mean(f.sequence(), {.axes = {0, 1}});
       },
       "f32[6]"},
      {"mean of all", [](Feeds& f) { return mean(f.sequence()); }, "f32[]"},
      {"var", [](Feeds& f) { return var(f.sequence(), {.axes = 1, .keep_dims = true}); },
       "f32[?, 1, 6]"},
      {"logsumexp", [](Feeds& f) { return logsumexp(f.sequence(), {.axes = 2}); }, "f32[?, L]"},
      {"max", [](Feeds& f) { return max(f.sequence(), {.axes = 1}); }, "f32[?, 6]"},
      {"argmax", [](Feeds& f) { return argmax(f.sequence(), {.axis = 1}); }, "i64[?, 6]"},
      {"cumsum", [](Feeds& f) { return cumsum(f.sequence(), {.axis = 1}); }, "f32[?, L, 6]"},
      {"sort", [](Feeds& f) { return sort(f.sequence(), {.axis = 1})[1]; }, "i64[?, L, 6]"},
      {"topk", [](Feeds& f) { return topk(f.text(), {.k = 1})[0]; }, "u8[?, 1]"},
      {"embedding", [](Feeds& f) { return embedding(f.text(), {.rows = 256, .units = 8}); },
       "f32[?, L, 8]"},
      {"embedding_bag",
       [](Feeds& f) {
         return embedding_bag(f.parameter({9, 4}), f.text());
       },
       "f32[?, 4]"},
      {"gather",
       [](Feeds& f) {
         return gather(f.parameter({9, 4}), f.text());
       },
       "f32[?, L, 4]"},
      {"take_along_axis",
       [](Feeds& f) {
         return take_along_axis(f.sequence(), f.feed({kBatch, f.length, 1}, i64));
       },
       "f32[?, L, 1]"},
      {"segment_sum",
       [](Feeds& f) {
         return segment_sum(f.feed({f.length, 6}), f.feed({f.length}, i64), {.segments = 3});
       },
       "f32[3, 6]"},
      {"one_hot",
       [](Feeds& f) {
         return one_hot(f.text(), {.to = Type{f32, {kBatch, f.length, 256}, {}}});
       },
       "f32[?, L, 256]"},
      {"transpose",
       [](Feeds& f) {
         return transpose(f.heads(2), {.perm = {2, 0, 1, 3}});
       },
       "f32[L, ?, 2, 4]"},
      {"rows",
       [](Feeds& f) {
         return reshape(f.sequence(), {-1, 6});
       },
       "f32[?L, 6]"},
      {"rows and back",
       [](Feeds& f) {
         return reshape(reshape(f.sequence(), {-1, 6}), {kBatch, f.length, 3, 2});
       },
       "f32[?, L, 3, 2]"},
      {"rest of a shape",
       [](Feeds& f) {
         return reshape(f.sequence(), {kBatch, -1});
       },
       "f32[?, 6L]"},
      {"flatten", [](Feeds& f) { return flatten(f.heads(2)); }, "f32[?, 8L]"},
      {"flatten scores",
       [](Feeds& f) { return flatten(matmul(f.heads(2), f.heads(2), {.transpose_b = true})); },
       "f32[?, 2LL]"},
      {"squeeze",
       [](Feeds& f) {
         return squeeze(f.feed({f.length, 1, 6}), {.axes = {1}});
       },
       "f32[L, 6]"},
      {"unsqueeze", [](Feeds& f) { return unsqueeze(f.text(), {.axes = {1}}); }, "u8[?, 1, L]"},
      {"stack",
       [](Feeds& f) {
         return stack({f.text(), f.text()}, {.axis = 1});
       },
       "u8[?, 2, L]"},
      {"concat",
       [](Feeds& f) {
         return concat({f.sequence(), f.sequence()}, {.axis = 2});
       },
       "f32[?, L, 12]"},
      {"concat along it",
       [](Feeds& f) {
         return concat({f.text(), f.text()}, {.axis = 1});
       },
       "u8[?, 2L]"},
      {"tile",
       [](Feeds& f) {
         return tile(f.text(), {.repeats = {1, 3}});
       },
       "u8[?, 3L]"},
      {"split",
       [](Feeds& f) {
         return split(f.sequence(), {.sizes = {2, 4}, .axis = 2})[1];
       },
       "f32[?, L, 4]"},
      {"the last element",
       [](Feeds& f) {
         return slice(f.sequence(), {.starts = {-1}, .stops = {INT64_MAX}, .axes = {1}});
       },
       "f32[?, 1, 6]"},
      {"slice of another axis",
       [](Feeds& f) { return slice(f.sequence(), {.starts = {1}, .stops = {3}, .axes = {2}}); },
       "f32[?, L, 2]"},
      {"flip", [](Feeds& f) { return flip(f.sequence(), {.axes = {1}}); }, "f32[?, L, 6]"},
      {"roll", [](Feeds& f) { return roll(f.sequence(), {.shifts = {1}, .axes = {1}}); },
       "f32[?, L, 6]"},
      {"pad of another axis",
       [](Feeds& f) {
         return pad(f.sequence(), {.low = {0, 0, 1}});
       },
       "f32[?, L, 7]"},
      {"broadcast_to",
       [](Feeds& f) {
         return broadcast_to(f.feed({6}), {kBatch, f.length, 6});
       },
       "f32[?, L, 6]"},
      {"tril",
       [](Feeds& f) {
         return tril(fill(f.graph(), {.type = Type{f32, {f.length, f.length}, {}}, .value = 1}));
       },
       "f32[L, L]"},
      {"arange",
       [](Feeds& f) {
         return arange(f.graph(), {.type = Type{i64, {f.length}, {}}});
       },
       "i64[L]"},
      {"positional_encoding", [](Feeds& f) { return positional_encoding(f.sequence()); },
       "f32[?, L, 6]"},
      {"rotary_embedding", [](Feeds& f) { return rotary_embedding(f.heads(2)); },
       "f32[?, 2, L, 4]"},
      {"alibi",
       [](Feeds& f) {
         return alibi(f.graph(), {.type = Type{f32, {2, f.length, f.length}, {}}});
       },
       "f32[2, L, L]"},
      {"attention",
       [](Feeds& f) {
         return scaled_dot_product_attention(f.heads(4), f.heads(2), f.heads(2), {.causal = true});
       },
       "f32[?, 4, L, 4]"},
      {"attention with a mask",
       [](Feeds& f) {
         return scaled_dot_product_attention(f.heads(2), f.heads(2), f.heads(2),
                                             f.feed({f.length, f.length}, boolean));
       },
       "f32[?, 2, L, 4]"},
      {"multi_head_attention",
       [](Feeds& f) { return multi_head_attention(f.sequence(), {.heads = 2, .causal = true}); },
       "f32[?, L, 6]"},
      {"cross attention",
       [](Feeds& f) {
         return multi_head_attention(f.feed({kBatch, 3, 6}), f.sequence(), {.heads = 2});
       },
       "f32[?, 3, 6]"},
      {"transformer_block",
       [](Feeds& f) { return transformer_block(f.sequence(), {.heads = 2, .causal = true}); },
       "f32[?, L, 6]"},
      {"conv1d that keeps the length",
       [](Feeds& f) { return conv1d(f.channels(), {.filters = 5, .kernel = 3, .padding = 1}); },
       "f32[?, 5, L]"},
      {"max_pool1d that keeps the length",
       [](Feeds& f) { return max_pool1d(f.channels(), {.kernel = 3, .stride = 1, .padding = 1}); },
       "f32[?, 2, L]"},
      {"conv1d_transpose that doubles the length",
       [](Feeds& f) {
         return conv1d_transpose(f.channels(), f.parameter({2, 5, 2}), {.stride = 2});
       },
       "f32[?, 5, 2L]"},
      {"scan", [](Feeds& f) { return scanned(f, 0, false); }, "f32[?, 6]"},
      {"scan, collected", [](Feeds& f) { return scanned(f, 1, true); }, "f32[L, ?, 6]"},
      {"rnn", [](Feeds& f) { return rnn(f.sequence(), {.units = 4}).output; }, "f32[?, L, 4]"},
      {"gru",
       [](Feeds& f) {
         return gru(f.sequence(), {.units = 4, .lengths = f.feed({kBatch}, i64)}).states[0];
       },
       "f32[?, 4]"},
      {"lstm",
       [](Feeds& f) { return lstm(f.sequence(), {.units = 4, .bidirectional = true}).output; },
       "f32[?, L, 8]"},
      {"softmax_cross_entropy",
       [](Feeds& f) { return softmax_cross_entropy(f.sequence(), f.text()); }, "f32[?, L]"},
      {"mse_loss",
       [](Feeds& f) { return mse_loss(f.sequence(), f.sequence(), {.reduction = "mean"}); },
       "f32[]"},
      {"ctc_loss",
       [](Feeds& f) {
         return ctc_loss(log_softmax(f.sequence()), f.feed({kBatch, 3}, i64), f.feed({kBatch}, i64),
                         f.feed({kBatch}, i64));
       },
       "f32[]"},
      {"accuracy", [](Feeds& f) { return accuracy(f.sequence(), f.text()); }, "f64[2]"},
  };
  return all;
}

class Length : public ::testing::TestWithParam<Case> {};

TEST_P(Length, HasTheTypesOfConstants) {
  Feeds any(kLength);
  const Value y = GetParam().record(any);
  EXPECT_EQ(y.type().str(), GetParam().type);
  any.net.output("y", y);
  for (const int64_t length : {1, 2, 5}) {
    Feeds constant(length);
    EXPECT_EQ(y.type().at_length(length), GetParam().record(constant).type()) << length;
    const auto set = any.net.ir().clone();
    set_sequence_length(*set, length);
    EXPECT_FALSE(ir::has_length(*set));
    EXPECT_EQ(set->main().outputs[0].value.type(), y.type().at_length(length)) << length;
  }
}

std::string test_name(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.name;
  std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
  return name;
}
INSTANTIATE_TEST_SUITE_P(Ops, Length, ::testing::ValuesIn(cases()), test_name);

TEST(LengthErrors, NameTheOpAndTheAxis) {
  Feeds f(kLength);
  const Loc here{"net.cpp", 9};
  const Value x = f.sequence(), channels = f.channels();
  expect_user_error([&] { slice(x, {.starts = {0}, .stops = {-1}, .axes = {1}}, here); },
                    "net.cpp:9: slice: axis 1 of the result of (f32[?, L, 6]) is no multiple of "
                    "the length: it is "
                    "1008 for the length 1009 and 1012 for the length 1013");
  expect_user_error([&] { max_pool1d(channels, {.kernel = 2}, here); },
                    "net.cpp:9: max_pool1d: axis 2 of the result of (f32[?, 2, L]) length 504 506");
  expect_user_error([&] { pad(x, {.low = {0, 1, 0}}, here); }, "net.cpp:9: pad: axis 1 1010 1014");
  expect_user_error(
      [&] {
        concat({x, f.feed({kBatch, 2, 6})}, {.axis = 1}, here);
      },
      "net.cpp:9: concat: axis 1 1011 1015");
  expect_user_error(
      [&] {
        add(x, f.feed({8, 6}), here);
      },
      "net.cpp:9: add: f32[?, L, 6] f32[8, 6]");
  expect_user_error(
      [&] {
        split(x, {.sizes = {4, 4}, .axis = 1}, here);
      },
      "net.cpp:9: split: f32[?, L, 6]");
  expect_user_error([&] { reshape(x, {kBatch, 6, 8}, here); }, "net.cpp:9: reshape: f32[?, L, 6]");
  expect_user_error([&] { roll(x, {.shifts = {1}, .axes = {3}}, here); },
                    "net.cpp:9: roll: axis 3");
}

TEST(LengthErrors, StateTheLengthThatDoesNotFit) {
  Feeds f(kLength);
  const Value x = f.feed({kLength, kLength, kLength, kLength, int64_t{10'000'000'000}}, u8);
  expect_user_error([&] { flatten(x); },
                    "flatten: (u8[L, L, L, L, 10000000000]) do not fit for every length; for the "
                    "length 1009: a shape has more elements");
}

TEST(LengthErrors, LayersNeedConstantFeatures) {
  Feeds f(kLength);
  expect_user_error(
      [&] {
        f.net.parameter("w", {kLength, 4}, Init::zeros());
      },
      "the shape of a variable, [L, 4], cannot depend on the length");
  const Value wide = f.feed({kBatch, 3, kLength}), channels = f.feed({kBatch, kLength, 3, 3});
  expect_user_error([&] { linear(wide, {.units = 4}); }, "linear: f32[?, 3, L]");
  expect_user_error([&] { layer_norm(wide); }, "layer_norm: f32[?, 3, L]");
  expect_user_error([&] { batch_norm(channels); }, "batch_norm: f32[?, L, 3, 3]");
  expect_user_error([&] { group_norm(channels, {.groups = 1}); }, "group_norm: f32[?, L, 3, 3]");
  expect_user_error([&] { conv2d(channels, {.filters = 4, .kernel = 3}); }, "f32[?, L, 3, 3]");
  expect_user_error([&] { lstm(wide, {.units = 4}); }, "lstm: f32[?, 3, L]");
  expect_user_error([&] { multi_head_attention(wide, {.heads = 1}); }, "f32[?, 3, L]");
  expect_user_error([&] { update_cache(cache(f.graph(), "c", {kLength}, f32), wide); },
                    "the shape of a variable, [L]");
  const Value lengths = f.feed({kBatch}, i64);
  expect_user_error([&] { ctc_loss(log_softmax(f.sequence()), f.text(), lengths, lengths); },
                    "ctc_loss: targets is u8[?, L], not integers [?, S]");
}

TEST(LengthErrors, ScansHaveOneLength) {
  Feeds f(kLength);
  const Value start = fill(f.graph(), {.type = Type{f32, {6}, {}}, .value = 0});
  const auto body = [](const Values& carries, const Values&) {
    return ScanStep{.carries = carries};
  };
  const Value x = f.feed({kLength, 6});
  expect_user_error([&] { scan({start}, {x, f.feed({8, 6})}, body); }, "f32[8, 6] has not L");
  expect_user_error([&] { scan({start}, {x}, body, {.steps = 8}); }, "f32[L, 6] has not 8");
}

}  // namespace
}  // namespace fluid::length_test
