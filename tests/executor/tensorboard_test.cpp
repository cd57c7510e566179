// Tests the output of fl::TensorBoard other than scalars. tests/e2e/event_files.py compares the
// files of fluidrun with numpy and reads them with TensorBoard's reader.

#include "executor/trainer/tensorboard.h"

#include <gtest/gtest.h>

#include <cmath>

#include "executor/trainer/tensor_image.h"
#include "frontend/fluid.h"
#include "frontend/images/decode.h"
#include "frontend/images/encode_png.h"
#include "tests/support/errors.h"
#include "tests/support/event_file.h"
#include "tests/support/temp_dir.h"

namespace fluid::tensorboard_values_test {
namespace {

using Doubles = std::vector<double>;

/// The expected values are those of numpy.histogram(values, bins=6).
TEST(Histogram, IsThatOfNumpy) {
  const float nan = NAN, inf = INFINITY;
  const auto values = Tensor::of<float>(
      {11}, std::vector<float>{-1.5f, 0, 0.25f, nan, 0.25f, 2, 3, inf, 3, -0.75f, -inf});
  const auto h = histogram_of(values, 6);
  ASSERT_TRUE(h);
  EXPECT_EQ(h->min, -1.5);
  EXPECT_EQ(h->max, 3);
  EXPECT_EQ(h->num, 8);
  EXPECT_EQ(h->sum, 6.25);
  EXPECT_EQ(h->sum_squares, 24.9375);
  EXPECT_EQ(h->right_edges, (Doubles{-0.75, 0, 0.75, 1.5, 2.25, 3}));
  EXPECT_EQ(h->counts, (Doubles{1, 1, 3, 0, 1, 2}));
}

TEST(Histogram, OfEqualOrNoFiniteValues) {
  const auto equal = histogram_of(Tensor::of<int64_t>({3}, std::vector<int64_t>{7, 7, 7}));
  ASSERT_TRUE(equal);
  EXPECT_EQ(equal->right_edges, Doubles{7});
  EXPECT_EQ(equal->counts, Doubles{3});
  EXPECT_FALSE(histogram_of(Tensor::of<float>({1}, std::vector<float>{NAN})));
  EXPECT_FALSE(histogram_of(Tensor(f32, {0})));
}

TEST(TensorImage, KeepsBytesAndScalesFloats) {
  const auto bytes = Tensor::of<uint8_t>({2, 1, 1, 3}, std::vector<uint8_t>{0, 1, 2, 7, 128, 255});
  EXPECT_EQ(image_of(bytes, 1).pixels, (std::vector<uint8_t>{7, 128, 255}));
  const auto unit = Tensor::of<float>({1, 1, 1, 3}, std::vector<float>{0, 0.5f, 0.25f});
  EXPECT_EQ(image_of(unit, 0).pixels, (std::vector<uint8_t>{0, 128, 64}));
  const auto wide = Tensor::of<float>({1, 1, 1, 3}, std::vector<float>{-2, 0, 3});
  EXPECT_EQ(image_of(wide, 0).pixels, (std::vector<uint8_t>{0, 102, 255}));
  const auto flat = Tensor::of<float>({1, 1, 1, 2}, std::vector<float>{5, 5});
  EXPECT_EQ(image_of(flat, 0).pixels, (std::vector<uint8_t>{0, 0}));
  const auto planes =
      Tensor::of<uint8_t>({1, 3, 1, 2}, std::vector<uint8_t>{1, 2, 10, 20, 100, 200});
  EXPECT_EQ(image_of(planes, 0).pixels, (std::vector<uint8_t>{1, 10, 100, 2, 20, 200}));
  EXPECT_TRUE(holds_images({9, 4, 2, 2}));
  EXPECT_FALSE(holds_images({9, 2, 2, 2}));
  EXPECT_FALSE(holds_images({9, 3, 2}));
}

TEST(Png, IsReadBack) {
  Image image(3, 5, 3);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(37 * i);
  const Image read = decode_png(encode_png(image), "test");
  EXPECT_EQ(read.height, 3);
  EXPECT_EQ(read.width, 5);
  EXPECT_EQ(read.pixels, image.pixels);
  expect_user_error([&] { encode_png(Image(3, 5, 2)); }, "1, 3 or 4 channels, not 2");
  expect_user_error([&] { encode_png(Image(0, 5, 3)); }, "at least one pixel");
}

/// y = x w + b; b is frozen.
Program line() {
  Program net("line");
  const Value x = net.data("x", {kBatch, 1}, f32);
  const Value w = net.parameter("fc.w", {1}, Init::constant(1));
  const Value b = net.parameter("head.b", {1}, Init::constant(0));
  const Value loss = mean(square(x * w + b));
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 0.1}, {.groups = {{.pattern = "head", .trainable = false}}});
  return net;
}

ReadEvents events_of(TensorBoard& board, Program& net, const std::string& directory) {
  board.retain_gradients(net);
  Trainer trainer(net, cpu());
  Reader data(Dataset{{{"x", Tensor(f32, {4, 1})}}}, {.batch = 1});
  FitOptions options{.on_epoch = [](const EpochEvent&) {}, .notice = nullptr};
  board.attach(options, trainer.executor());
  trainer.fit(data, options);
  return read_events(event_files(directory).at(0));
}

TEST(TensorBoardValues, AreThoseThatThePatternSelects) {
  const TempDir dir;
  Program net = line();
  TensorBoard board(dir.file("all"), {.histograms_every = 3});
  ReadEvents events = events_of(board, net, dir.file("all"));
  EXPECT_EQ(events.other_tags,
            (std::map<std::string, std::set<int64_t>>{
                {"parameter/fc.w", {3}}, {"parameter/head.b", {3}}, {"gradient/fc.w", {3}}}));
  Program again = line();
  TensorBoard head(dir.file("head"), {.histograms_every = 2, .histograms_of = "head"});
  events = events_of(head, again, dir.file("head"));
  EXPECT_EQ(events.other_tags,
            (std::map<std::string, std::set<int64_t>>{{"parameter/head.b", {2, 4}}}));
  TensorBoard none(dir.file("none"), {.histograms_every = 2, .histograms_of = "tail"});
  expect_user_error([&] { events_of(none, again, dir.file("none")); },
                    "'tail' selects no parameter; there are 'fc.w', 'head.b'");
}

TEST(TensorBoardValues, CanBeAdded) {
  const TempDir dir;
  Program net = line();
  TensorBoard board(dir.file("board"));
  board.add_text("before", "text");
  board.add_images("images", Tensor(u8, {2, 3, 4, 4}), 1);
  expect_user_error(
      [&] {
        board.add_images("row", Tensor(f32, {2, 3, 4}), 1);
      },
      "TensorBoard images 'row' must be [N, channels, height, width] with 1, 3 or 4 "
      "channels, got f32[2, 3, 4]");
  const ReadEvents events = events_of(board, net, dir.file("board"));
  EXPECT_EQ(events.other_tags, (std::map<std::string, std::set<int64_t>>{
                                   {"before", {0}}, {"images/0", {1}}, {"images/1", {1}}}));
  board.add_text("after", "text", 4);
  const ReadEvents more = read_events(event_files(dir.file("board")).at(0));
  EXPECT_EQ(more.other_tags.at("after"), std::set<int64_t>{4});
}

}  // namespace
}  // namespace fluid::tensorboard_values_test
