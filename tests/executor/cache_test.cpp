// Caches: states that predict steps write. Decoders that read one byte a step compute what the
// whole model does.

#include "frontend/cache.h"

#include <gtest/gtest.h>

#include "frontend/examples/char_gpt.h"
#include "frontend/examples/lstm_text.h"
#include "frontend/fluid.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace fluid::cache_test {
namespace {

/// Output "sum": the sum of the x of all predict steps.
Program running_sum() {
  Program net("running_sum");
  const Value x = net.data("x", {2}, f32);
  const Value before = cache(net.ir().main(), "before", {2}, f32);
  const Value sum = before + x * net.parameter("w", {2}, Init::constant(1));
  net.output("sum", sum);
  update_cache(before, sum);
  const Value loss = mean(square(sum));
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 0});
  return net;
}

Tensor pair(float a, float b) {
  Tensor t(f32, {2});
  t.as<float>()[0] = a;
  t.as<float>()[1] = b;
  return t;
}

TEST(Cache, IsWrittenByPredictStepsOnly) {
  Executor exe(running_sum(), cpu());
  EXPECT_EQ(exe.predict({{"x", pair(1, 2)}})["sum"].at(1), 2);
  EXPECT_EQ(exe.eval({{"x", pair(5, 5)}})["sum"].at(1), 7);
  EXPECT_EQ(exe.run({{"x", pair(5, 5)}})["sum"].at(1), 7);
  EXPECT_EQ(exe.predict({{"x", pair(1, 2)}})["sum"].at(1), 4);
  EXPECT_EQ(exe.parameter("before").at(1), 4);
}

TEST(Cache, IsNotPartOfFiles) {
  const TempDir folder;
  Executor exe(running_sum(), cpu());
  exe.predict({{"x", pair(1, 2)}});
  exe.save(folder.file("p.safetensors"));
  Executor other(running_sum(), cpu());
  other.load(folder.file("p.safetensors"));
  EXPECT_EQ(other.predict({{"x", pair(1, 2)}})["sum"].at(1), 2);
}

TEST(Cache, RejectsWrongUpdates) {
  Program net("net");
  const Value x = net.data("x", {2}, f32), c = cache(net.ir().main(), "c", {2}, f32);
  expect_user_error([&] { update_cache(x, x); }, "the value of data is not a cache");
  expect_user_error([&] { update_cache(c, cast(x, f64)); }, "f64[2] 'c' f32[2]");
  expect_user_error([&] { cache(net.ir().main(), "d", {kBatch}, f32); },
                    "cannot depend on the batch");
}

/// Expects that `decoder`, fed byte by byte, gives the logits of `whole` for a text.
void expect_same_logits(const Program& whole, const Program& decoder, int64_t length,
                        bool has_position) {
  const TempDir folder;
  Executor reference(whole, cpu()), exe(decoder, cpu());
  reference.save(folder.file("p.safetensors"));
  exe.load(folder.file("p.safetensors"));
  Tensor text(u8, {1, length});
  for (int64_t i = 0; i < length; ++i) {
    text.as<uint8_t>()[static_cast<size_t>(i)] = static_cast<uint8_t>(97 + i * 7 % 26);
  }
  const Tensor expected = reference.predict({{"text", text}})["logits"].copy();
  for (int64_t i = 0; i < length; ++i) {
    Tensor byte(u8, {1, 1}), position(i64, {});
    byte.as<uint8_t>()[0] = text.as<uint8_t>()[static_cast<size_t>(i)];
    position.as<int64_t>()[0] = i;
    const Tensor logits =
        has_position ? exe.predict({{"text", byte}, {"position", position}})["logits"].copy()
                     : exe.predict({{"text", byte}})["logits"].copy();
    for (int64_t c = 0; c < 256; ++c) {
      ASSERT_NEAR(logits.at(c), expected.at(i * 256 + c), 1e-5) << "position " << i;
    }
  }
}

TEST(Cache, LetsATransformerDecodeBytes) {
  const CharGptConfig config{.layers = 2, .heads = 2, .width = 16, .length = 12};
  Program whole("whole"), decoder("decoder");
  record_char_gpt(whole, config);
  record_char_gpt_decoder(decoder, config);
  expect_same_logits(whole, decoder, config.length, true);
}

/// Records a block whose only position encoding are linear biases. With `caches`, a decoder.
void record_biased_block(Program& net, int64_t length, bool caches) {
  const Value text = net.data("text", {1, caches ? 1 : length}, u8);
  TransformerBlock block{.heads = 4, .causal = true, .alibi = true};
  if (caches) {
    block.cache = AttentionCache{.length = length, .position = net.data("position", {}, i64)};
  }
  const Value x = embedding(cast(text, i64), {.rows = 256, .units = 16});
  net.output("logits", linear(transformer_block(x, block), {.units = 256}));
}

TEST(Cache, KeepsTheBiasesOfAlibi) {
  constexpr int64_t kLength = 9;
  Program whole("whole"), decoder("decoder");
  record_biased_block(whole, kLength, false);
  record_biased_block(decoder, kLength, true);
  expect_same_logits(whole, decoder, kLength, true);
}

TEST(Cache, LetsAnLstmDecodeBytes) {
  const LstmTextConfig config{.layers = 2, .width = 16, .length = 12};
  Program whole("whole"), decoder("decoder");
  record_lstm_text(whole, config);
  record_lstm_text_decoder(decoder, config);
  expect_same_logits(whole, decoder, config.length, false);
}

/// Records attention of one position, feed "p", with a cache of `length` positions.
Program attention_with_cache(int64_t length, DType position) {
  Program net("attention");
  const Value x = net.data("x", {1, 1, 8}, f32), p = net.data("p", {}, position);
  const AttentionCache cache{.length = length, .position = p};
  net.output("y", multi_head_attention(x, {.heads = 2, .alibi = true, .cache = cache}));
  return net;
}

TEST(Cache, RejectsPositionsOutsideIt) {
  Executor exe(attention_with_cache(4, i64), cpu());
  const auto predict = [&](int64_t position) {
    Tensor p(i64, {});
    p.as<int64_t>()[0] = position;
    exe.predict({{"x", Tensor(f32, {1, 1, 8})}, {"p", p}});
  };
  for (const int64_t position : {0, 3}) predict(position);
  for (const int64_t position : {-1, 4, 100}) {
    expect_user_error(
        [&] { predict(position); },
        "in attention0: value " + std::to_string(position) + " of feed 'p' is out of range [0, 4)");
  }
}

TEST(Cache, MayBeLongerThanTheDtypeOfThePositionCounts) {
  const auto first = [](DType position) {
    Executor exe(attention_with_cache(300, position), cpu());
    return exe.predict({{"x", Tensor(f32, {1, 1, 8})}, {"p", Tensor(position, {})}})["y"].at(0);
  };
  EXPECT_EQ(first(u8), first(i64));
}

TEST(Cache, IsForOnePositionOfSelfAttention) {
  Program net("net");
  const Value x = net.data("x", {1, 2, 8}, f32), position = net.data("p", {}, i64);
  const AttentionCache attention{.length = 4, .position = position};
  const auto attend = [&](Value input, const AttentionCache& c) {
    multi_head_attention(input, {.heads = 2, .cache = c});
  };
  expect_user_error([&] { attend(x, attention); }, "f32[1, 2, 8]");
  const Value one = net.data("one", {1, 1, 8}, f32);
  expect_user_error([&] { attend(one, {.length = 0, .position = position}); }, "positive length");
  expect_user_error([&] { attend(one, {.length = 4, .position = one}); }, "position f32[1, 1, 8]");
  expect_user_error([&] { multi_head_attention(one, x, {.heads = 2, .cache = attention}); },
                    "self-attention");
}

}  // namespace
}  // namespace fluid::cache_test
