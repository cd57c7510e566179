#include "executor/session/feeds.h"

#include <gtest/gtest.h>

#include <cmath>

#include "frontend/fluid.h"
#include "ops/program_file.h"
#include "tests/support/errors.h"

namespace fluid::feeds_test {
namespace {

Feed image_feed() {
  return {.name = "image", .declared_dtype = f32, .type = Type{f32, {kBatch, 3}, {}}, .scale = 1};
}

Batch batch_of(const std::string& name, Tensor tensor) {
  return {.size = tensor.shape().at(0), .columns = {{name, tensor}}};
}

TEST(Feeds, MessagesNameTheFeedAndWhatItIs) {
  const std::vector<Feed> feeds = {image_feed()};
  const std::vector<std::string> known = {"image", "label"};
  auto checking = [&](const Batch& batch) {
    return [&feeds, &known, batch] { check_feeds(batch, feeds, known); };
  };
  expect_user_error(checking(batch_of("label", Tensor(i64, {2}))),
                    "feed 'image' is missing: the batch has 'label'");
  expect_user_error(checking({.size = 2, .columns = {}}),
                    "feed 'image' is missing: the batch has no columns");
  expect_user_error(checking(batch_of("image", Tensor(i64, {2, 3}))),
                    "feed 'image' is i64[2, 3] in a batch of 2; the program takes f32[?, 3]");
  expect_user_error(checking(batch_of("image", Tensor(f32, {2, 4}))),
                    "feed 'image' is f32[2, 4] in a batch of 2; the program takes f32[?, 3]");
  Batch wrong_size = batch_of("image", Tensor(f32, {2, 3}));
  wrong_size.size = 3;
  expect_user_error(checking(wrong_size), "feed 'image' is f32[2, 3] in a batch of 3");
  Tensor doubles(f64, {2, 3});
  doubles.as<double>()[4] = -1e300;
  expect_user_error(checking(batch_of("image", doubles)),
                    "feed 'image': sample 1 of the batch holds -1e+300, beyond the range of f32; "
                    "PrecisionOptions::dtype f64 can represent it");
  doubles.as<double>()[4] = -HUGE_VAL;
  EXPECT_NO_THROW(check_feeds(batch_of("image", doubles), feeds, known)) << "as it was given";
  Batch extra = batch_of("image", Tensor(f32, {2, 3}));
  extra.columns.emplace_back("labels", Tensor(i64, {2}));
  expect_user_error(checking(extra), "the program has no feed 'labels' (did you mean 'label'?)");
}

TEST(Feeds, TakesBytesForFloatsAndKnownColumnsThatNobodyReads) {
  Batch batch = batch_of("image", Tensor(u8, {2, 3}));
  batch.columns.emplace_back("label", Tensor(i64, {2}));
  EXPECT_NO_THROW(check_feeds(batch, {image_feed()}, {"image", "label"}));
}

TEST(Feeds, ConvertsAndScales) {
  const std::vector<uint8_t> bytes = {0, 51, 255};
  Feed feed = image_feed();
  feed.scale = 1 / 255.f;
  std::vector<float> floats(3);
  copy_feed(Tensor::of<uint8_t>({1, 3}, bytes), feed, 0, 1,
            reinterpret_cast<std::byte*>(floats.data()), 1);
  EXPECT_EQ(floats, (std::vector<float>{0, 51 * (1 / 255.f), 255 * (1 / 255.f)}));
  feed.type.dtype = f64;
  std::vector<double> doubles(3);
  copy_feed(Tensor::of<uint8_t>({1, 3}, bytes), feed, 0, 1,
            reinterpret_cast<std::byte*>(doubles.data()), 1);
  EXPECT_EQ(doubles[1], 51 * double{1 / 255.f});
}

/// (x * scale - mean) / std of element i, whose channel has number `c`.
double normalised(const Feed& feed, double x, size_t c) {
  const ChannelNorm channel = feed.channels.at(feed.channels.size() == 1 ? 0 : c);
  return (x * feed.scale - channel.mean) / channel.std;
}

TEST(Feeds, NormalisesEveryChannel) {
  const int64_t n = 30, inner = 1201;  // several threads, whose ranges meet within a channel
  Tensor column(u8, {n, 3, inner});
  for (int64_t i = 0; i < column.numel(); ++i) {
    column.as<uint8_t>()[static_cast<size_t>(i)] = static_cast<uint8_t>(i * 7 % 256);
  }
  Feed feed{.name = "x", .declared_dtype = f32, .type = Type{f64, {kBatch, 3, inner}, {}}};
  feed.scale = 0.25;
  for (const auto& channels :
       {std::vector<ChannelNorm>{{1, 2}, {-3, 0.5}, {7, 3}}, std::vector<ChannelNorm>{{4, 0.3}}}) {
    feed.channels = channels;
    for (const int threads : {1, 2, 3}) {
      std::vector<double> copy(static_cast<size_t>(column.numel()), NAN);
      copy_feed(column, feed, 0, column.shape()[0], reinterpret_cast<std::byte*>(copy.data()),
                threads);
      for (size_t i = 0; i < copy.size(); ++i) {
        const double x = column.at(static_cast<int64_t>(i));
        ASSERT_EQ(copy[i], normalised(feed, x, i / inner % 3)) << i;
      }
    }
  }
}

TEST(Feeds, CopiesSomeSamples) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  std::vector<float> copy(4);
  auto* to = reinterpret_cast<std::byte*>(copy.data());
  Feed feed{.name = "x", .declared_dtype = f32, .type = Type{f32, {kBatch, 2}, {}}};
  copy_feed(Tensor::of<float>({3, 2}, values), feed, 1, 2, to, 1);
  EXPECT_EQ(copy, (std::vector<float>{3, 4, 5, 6}));
  feed.type.shape = {4};  // without a batch dimension: whole in each micro-batch
  copy_feed(Tensor::of<float>({4}, std::span(values).first(4)), feed, 1, 2, to, 1);
  EXPECT_EQ(copy, (std::vector<float>{1, 2, 3, 4}));
}

TEST(Feeds, NormalisesFeaturesAndSingleNumbers) {
  const std::vector<float> values = {1, 2, 3, 4};
  std::vector<float> copy(4);
  Feed feed{.name = "x", .declared_dtype = f32, .type = Type{f32, {kBatch, 2}, {}}};
  feed.channels = {{1, 2}, {0, 4}};
  copy_feed(Tensor::of<float>({2, 2}, values), feed, 0, 2,
            reinterpret_cast<std::byte*>(copy.data()), 1);
  EXPECT_EQ(copy, (std::vector<float>{0, 0.5, 1, 1}));
  feed.channels = {{1, 2}};
  feed.type.shape = {kBatch};
  copy_feed(Tensor::of<float>({4}, values), feed, 0, 4, reinterpret_cast<std::byte*>(copy.data()),
            1);
  EXPECT_EQ(copy, (std::vector<float>{0, 0.5, 1, 1.5}));
  copy_feed(Tensor(f32, {0}), feed, 0, 0, nullptr, 1);
}

/// Returns the values of an image of two channels, one pixel each, as a program with `options`
/// reads them.
std::vector<double> read_by(const DataOptions& options, const std::string& as) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 2, 1, 1}, f32, options);
  const Value w = net.parameter("w", {}, Init::constant(1));
  net.output("x", x * 1.0);
  minimize(mean(x * w), SGD{.lr = 0});
  const Program saved(read_program(net.text(), "net.fir"));
  Executor exe(saved, cpu(), {});
  const std::vector<uint8_t> bytes = {51, 102};
  const Batch batch = batch_of("x", Tensor::of<uint8_t>({1, 2, 1, 1}, bytes));
  const OutputViews out = as == "run"    ? exe.run(batch)
                          : as == "eval" ? exe.eval(batch)
                                         : exe.predict(batch);
  return {out["x"].at(0), out["x"].at(1)};
}

TEST(Feeds, AreTheSameInTrainingEvalAndPredict) {
  for (const char* as : {"run", "eval", "predict"}) {
    EXPECT_EQ(read_by({.scale = 0.5, .mean = {1, 2}, .std = {4}}, as),
              (std::vector<double>{(25.5 - 1) / 4, (51.0 - 2) / 4}))
        << as;
    EXPECT_EQ(read_by({.mean = {1}}, as), (std::vector<double>{50, 101})) << as;
    EXPECT_EQ(read_by({.std = {2, 0.5}}, as), (std::vector<double>{25.5, 204})) << as;
  }
}

TEST(Feeds, CopiesTheSameBytesWithAnyNumberOfThreads) {
  const int64_t n = 100'003;
  Tensor column(f32, {n});
  for (int64_t i = 0; i < n; ++i)
    column.as<float>()[static_cast<size_t>(i)] = static_cast<float>(i);
  Feed feed{.name = "x", .declared_dtype = f32, .type = Type{f32, {kBatch}, {}}};
  for (const int threads : {1, 2, 3}) {
    std::vector<float> copy(static_cast<size_t>(n), -1);
    copy_feed(column, feed, 0, column.shape()[0], reinterpret_cast<std::byte*>(copy.data()),
              threads);
    EXPECT_TRUE(std::equal(copy.begin(), copy.end(), column.as<float>().begin())) << threads;
  }
}

}  // namespace
}  // namespace fluid::feeds_test
