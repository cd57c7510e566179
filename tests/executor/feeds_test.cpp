#include "executor/feeds.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace fluid {
namespace {

Feed image_feed() {
  return {.name = "image", .recorded = f32, .type = Type{f32, {kBatch, 3}, {}}, .scale = 1};
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
  copy_feed(Tensor::of<uint8_t>({1, 3}, bytes), feed, reinterpret_cast<std::byte*>(floats.data()),
            1);
  EXPECT_EQ(floats, (std::vector<float>{0, 51 * (1 / 255.f), 255 * (1 / 255.f)}));
  feed.type.dtype = f64;
  std::vector<double> doubles(3);
  copy_feed(Tensor::of<uint8_t>({1, 3}, bytes), feed, reinterpret_cast<std::byte*>(doubles.data()),
            1);
  EXPECT_EQ(doubles[1], 51 * double{1 / 255.f});
}

TEST(Feeds, CopiesTheSameBytesWithAnyNumberOfThreads) {
  const int64_t n = 100'003;
  Tensor column(f32, {n});
  for (int64_t i = 0; i < n; ++i)
    column.as<float>()[static_cast<size_t>(i)] = static_cast<float>(i);
  Feed feed{.name = "x", .recorded = f32, .type = Type{f32, {kBatch}, {}}};
  for (const int threads : {1, 2, 3}) {
    std::vector<float> copy(static_cast<size_t>(n), -1);
    copy_feed(column, feed, reinterpret_cast<std::byte*>(copy.data()), threads);
    EXPECT_TRUE(std::equal(copy.begin(), copy.end(), column.as<float>().begin())) << threads;
  }
}

}  // namespace
}  // namespace fluid
