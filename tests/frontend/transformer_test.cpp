// Layers of transformers: their parameters, their types, and what they reject. Their numbers are
// compared with PyTorch's in e2e.Golden.CharGptAdamW.

#include "frontend/transformer.h"

#include <gtest/gtest.h>

#include <set>

#include "frontend/program.h"
#include "tests/support/errors.h"
#include "tests/support/parameters_of.h"

namespace fluid::transformer_test {
namespace {

using Names = std::vector<std::string>;

TEST(Transformer, EmbeddingGathersRows) {
  Program net("net");
  const Value index = net.data("index", {kBatch, 7}, i32);
  const Value y = embedding(index, {.rows = 10, .units = 4});
  EXPECT_EQ(y.type(), (Type{f32, {kBatch, 7, 4}, {}}));
  const Value w = net.parameter("w", {10, 3}, Init::zeros(), {.dtype = f64});
  EXPECT_EQ(embedding(index, {.rows = 10, .units = 3, .padding = 0, .weight = w}).type(),
            (Type{f64, {kBatch, 7, 3}, {}}));
  EXPECT_EQ(parameters_of(net), (Names{"embedding0.w f32[10, 4]", "w f64[10, 3]"}));
}

TEST(Transformer, SelfAttentionAddsOneProjectionOfQueriesKeysAndValues) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 5, 12}, f32);
  EXPECT_EQ(multi_head_attention(x, {.heads = 4, .causal = true}).type(), x.type());
  EXPECT_EQ(multi_head_attention(x, {.heads = 6, .key_heads = 2, .bias = false}).type(), x.type());
  EXPECT_EQ(parameters_of(net),
            (Names{"attention0.qkv.w f32[12, 36]", "attention0.qkv.b f32[36]",
                   "attention0.out.w f32[12, 12]", "attention0.out.b f32[12]",
                   "attention1.qkv.w f32[12, 20]", "attention1.out.w f32[12, 12]"}));
}

TEST(Transformer, CrossAttentionTakesKeysOfAnotherLengthAndWidth) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 5, 12}, f32);
  const Value memory = net.data("memory", {kBatch, 9, 8}, f32);
  const Value mask = net.data("mask", {kBatch, 1, 1, 9}, boolean);
  const Value y = multi_head_attention(x, memory, {.heads = 3, .mask = mask, .bias = false});
  EXPECT_EQ(y.type(), x.type());
  EXPECT_EQ(parameters_of(net), (Names{"attention0.q.w f32[12, 12]", "attention0.kv.w f32[8, 24]",
                                       "attention0.out.w f32[12, 12]"}));
}

TEST(Transformer, BlockNormalisesBeforeOrAfterItsLayers) {
  const auto last_op = [](bool norm_first) {
    Program net("net");
    const Value x = net.data("x", {kBatch, 5, 12}, f32);
    const Value y = transformer_block(x, {.heads = 3, .norm_first = norm_first, .dropout = 0.1});
    EXPECT_EQ(y.type(), x.type());
    EXPECT_EQ(parameters_of(net).size(), 12u);
    return y.op()->name;
  };
  EXPECT_EQ(last_op(true), "add");
  EXPECT_EQ(last_op(false), "layer_norm");
}

TEST(Transformer, AttentionDropoutDrawsFromAStreamOfItsOwnInEachLayer) {
  Program net("net");
  Value x = net.data("x", {kBatch, 5, 12}, f32);
  const Value mask = net.data("mask", {kBatch, 1, 1, 5}, boolean);
  x = transformer_block(x, {.heads = 3, .mask = mask, .attention_dropout = 0.1});
  x = multi_head_attention(x, {.heads = 3, .causal = true, .attention_dropout = 0.2});
  const Value q = net.data("q", {kBatch, 2, 3, 4}, f32);
  EXPECT_EQ(scaled_dot_product_attention(q, q, q, {.scale = 2, .dropout = 0.3}).type(), q.type());
  EXPECT_EQ(scaled_dot_product_attention(q, q, q).op()->name, "scaled_dot_product_attention");
  std::vector<double> dropout;
  std::set<int64_t> streams;
  for (const auto& op : net.ir().main().ops) {
    if (op->name != "scaled_dot_product_attention_dropout") continue;
    dropout.push_back(op->attrs.get<double>("dropout"));
    streams.insert(op->attrs.get<int64_t>("stream"));
  }
  EXPECT_EQ(dropout, (std::vector{0.1, 0.2, 0.3}));
  EXPECT_EQ(streams.size(), 3U);
}

TEST(Transformer, BlocksAreNumbered) {
  Program net("net");
  Value x = net.data("x", {kBatch, 5, 12}, f32);
  for (int i = 0; i < 2; ++i) x = transformer_block(x, {.heads = 3, .hidden = 7, .bias = false});
  EXPECT_EQ(
      parameters_of(net),
      (Names{"block0.ln0.scale f32[12]", "block0.attention.qkv.w f32[12, 36]",
             "block0.attention.out.w f32[12, 12]", "block0.ln1.scale f32[12]",
             "block0.fc0.w f32[12, 7]", "block0.fc1.w f32[7, 12]", "block1.ln0.scale f32[12]",
             "block1.attention.qkv.w f32[12, 36]", "block1.attention.out.w f32[12, 12]",
             "block1.ln1.scale f32[12]", "block1.fc0.w f32[12, 7]", "block1.fc1.w f32[7, 12]"}));
}

TEST(Transformer, RejectsWhatDoesNotFit) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 5, 12}, f32), flat = net.data("flat", {kBatch, 12}, f32);
  const Value odd = net.data("odd", {kBatch, 5, 3}, f32);
  const Loc at{"net.cpp", 7};
  const std::string mha = "net.cpp:7: multi_head_attention: ";
  const auto expect = [](const std::string& message, const auto& f) {
    expect_user_error(f, message);
  };
  expect("net.cpp:7: embedding: the input is f32[?, 12], not integer indices",
         [&] { embedding(flat, {.rows = 3, .units = 2}, at); });
  expect("net.cpp:7: embedding: the table is i32[3, 2], not a float [rows, units]", [&] {
    embedding(net.data("word", {kBatch}, i64), {.rows = 3, .units = 2, .dtype = i32}, at);
  });
  expect("net.cpp:7: embedding: rows and units must be positive, not 0 and 2",
         [&] { embedding(net.data("index", {kBatch}, i64), {.rows = 0, .units = 2}, at); });
  expect(mha + "the input is f32[?, 12], not a float [N, T, features]",
         [&] { multi_head_attention(flat, {.heads = 3}, at); });
  expect(mha + "the memory is f32[?, 12], not a float [N, T, features]",
         [&] { multi_head_attention(x, flat, {.heads = 3}, at); });
  expect(mha + "5 heads do not divide 12 features",
         [&] { multi_head_attention(x, {.heads = 5}, at); });
  expect(mha + "4 heads of keys do not divide 6 heads",
         [&] { multi_head_attention(x, {.heads = 6, .key_heads = 4}, at); });
  expect(mha + "attention_dropout must lie between 0 and 1, not be -0.1",
         [&] { multi_head_attention(x, {.heads = 3, .attention_dropout = -0.1}, at); });
  expect("net.cpp:7: transformer_block: dropout must lie between 0 and 1, not be 2.0",
         [&] { transformer_block(x, {.heads = 3, .dropout = 2}, at); });
  expect(mha + "the mask is an empty value",
         [&] { multi_head_attention(x, x, {.heads = 3, .mask = Value()}, at); });
  const Value q = net.data("q", {kBatch, 2, 3, 4}, f32);
  expect(
      "net.cpp:7: scaled_dot_product_attention_dropout: attribute 'dropout' must lie between 0 "
      "and 1",
      [&] { scaled_dot_product_attention(q, q, q, {.dropout = 1.5}, at); });
  expect("net.cpp:7: transformer_block: hidden must not be negative, but is -1",
         [&] { transformer_block(x, {.heads = 3, .hidden = -1}, at); });
  expect("net.cpp:7: positional_encoding: 3 features are not even",
         [&] { positional_encoding(odd, at); });
}

}  // namespace
}  // namespace fluid::transformer_test
