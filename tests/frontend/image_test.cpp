// Decoding and the stages of images, against PIL and torchvision (tests/golden/images.py).

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "frontend/images/decode.h"
#include "frontend/readers/image_stages.h"
#include "frontend/readers/reader.h"
#include "frontend/readers/spec.h"
#include "frontend/readers/stage_spec.h"
#include "tests/support/errors.h"
#include "tests/support/image_files.h"

namespace fluid::image_test {
namespace {

/// A dataset of `n` equal images, with labels i % classes.
SampleSourcePtr images(const Image& image, int64_t n = 1, int64_t classes = 3) {
  Tensor pixels(DType::u8, {n, image.channels, image.height, image.width});
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < n; ++i) {
    const auto bytes = image.pixels.size();
    image.copy_to_chw(pixels.as<uint8_t>().subspan(static_cast<size_t>(i) * bytes, bytes));
    labels.push_back(i % classes);
  }
  Dataset data;
  data.columns = {{"image", pixels}, {"label", Tensor::of<int64_t>({n}, labels)}};
  data.source = "images";
  return make_source(std::move(data));
}

/// The first image of `source` in `epoch`, as bytes by rows.
std::string pixels_of(const SampleSource& source, int64_t epoch = 0, int64_t sample = 0) {
  const Image image = source.image(sample, 0, {.seed = 1, .epoch = epoch});
  return {image.pixels.begin(), image.pixels.end()};
}

std::string staged(const Image& image, const std::string& stages, int64_t epoch = 0) {
  return pixels_of(*apply_stages(images(image), stages, "images"), epoch);
}

TEST(Images, StagesAreThoseOfTorchvision) {
  for (const auto& golden : image_goldens()["transforms"]) {
    const auto stage = golden["stage"].get<std::string>();
    SCOPED_TRACE(stage);
    const SampleSourcePtr source = apply_stages(images(pattern_image()), stage, "images");
    EXPECT_EQ(source->columns()[0].shape,
              (std::vector<int64_t>{3, golden["height"], golden["width"]}));
    const std::string expected = bytes_of_hex(golden["pixels"].get<std::string>());
    const std::string actual = pixels_of(*source);
    ASSERT_EQ(actual.size(), expected.size());
    int64_t different = 0, most = 0;
    for (size_t i = 0; i < actual.size(); ++i) {
      const int64_t error = std::abs(int64_t{static_cast<uint8_t>(actual[i])} -
                                     int64_t{static_cast<uint8_t>(expected[i])});
      different += error > 0;
      most = std::max(most, error);
    }
    EXPECT_EQ(different, 0) << "of " << actual.size() << ", by at most " << most;
  }
}

TEST(Images, AreNormalizedAsByTorchvision) {
  const auto& golden = image_goldens()["normalize"];
  const SampleSourcePtr source =
      apply_stages(images(pattern_image()), golden["stage"].get<std::string>(), "images");
  EXPECT_EQ(source->columns()[0].str(), "image f32[3, 12, 17]");
  std::vector<float> values(static_cast<size_t>(source->columns()[0].numel()));
  std::byte* const to[] = {reinterpret_cast<std::byte*>(values.data()), nullptr};
  source->read(0, {}, to);
  const auto expected = golden["values"].get<std::vector<double>>();
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(values[7 * i], expected[i], 1e-6);
}

TEST(Images, AreDecodedAsByPil) {
  for (const auto& golden : image_goldens()["files"]) {
    const auto name = golden["name"].get<std::string>();
    SCOPED_TRACE(name);
    const Image image = decode_image(golden_image_file(name), name);
    EXPECT_EQ(image.height, golden["height"]);
    EXPECT_EQ(image.width, golden["width"]);
    EXPECT_TRUE(std::string(image.pixels.begin(), image.pixels.end()) ==
                bytes_of_hex(golden["pixels"].get<std::string>()));
  }
}

TEST(Images, DamagedFilesAreNamed) {
  expect_user_error([] { decode_image("GIF89a", "a.gif"); },
                    "'a.gif': neither a JPEG nor a PNG image");
  for (const std::string name : {"420.jpg", "progressive.jpg"}) {
    const std::string bytes = golden_image_file(name);
    for (const size_t size : {size_t{3}, size_t{100}, bytes.size() / 2, bytes.size() * 9 / 10}) {
      expect_user_error([&] { decode_image(bytes.substr(0, size), name); },
                        "'" + name + "': damaged JPEG image");
    }
  }
  std::string bytes = golden_image_file("rgb.png");
  expect_user_error([&] { decode_image(bytes.substr(0, 40), "x.png"); },
                    "'x.png': damaged PNG image: premature end of file");
  bytes[bytes.size() / 2] ^= 1;
  expect_user_error([&] { decode_image(bytes, "x.png"); }, "'x.png': damaged PNG image");
  std::string large = golden_image_file("420.jpg");
  const size_t frame = large.find("\xff\xc0");
  for (size_t i = 5; i < 9; i += 2) large[frame + i] = '\x7f';
  expect_user_error([&] { decode_image(large, "x.jpg"); },
                    "'x.jpg': damaged JPEG image: 32552 x 32539 pixels are too many");
}

TEST(Images, RandomStagesDependOnTheSeedTheEpochAndTheSample) {
  const SampleSourcePtr source = apply_stages(
      images(pattern_image(), 4),
      "resized_crop=8|flip|rotate=20|color_jitter,brightness=0.4,hue=0.1|erase=1", "images");
  const std::string first = pixels_of(*source, 0);
  EXPECT_EQ(first, pixels_of(*source, 0));
  EXPECT_NE(first, pixels_of(*source, 1));
  EXPECT_NE(first, pixels_of(*source, 0, 1));
  const SampleSourcePtr last =
      apply_stages(select_samples(images(pattern_image(), 4), {3}), "resized_crop=8", "images");
  EXPECT_EQ(pixels_of(*last),
            pixels_of(*apply_stages(images(pattern_image(), 4), "resized_crop=8", "images"), 0, 3))
      << "the index in the source counts, not that in the selection";
}

TEST(Images, RandomStagesGiveTheSameBatchesForAnyNumberOfWorkers) {
  const SampleSourcePtr source = apply_stages(
      images(pattern_image(), 50), "resized_crop=8|flip|erase|mixup=0.5,classes=3", "images");
  std::string expected;
  for (const int workers : {1, 3}) {
    Reader reader(source, {.batch = 8, .shuffle_seed = 2, .workers = workers});
    std::string bytes;
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (const Batch& batch : reader) {
        for (const auto& [name, column] : batch.columns) {
          bytes.append(static_cast<const char*>(column.data()),
                       static_cast<size_t>(column.bytes()));
        }
      }
    }
    if (expected.empty()) expected = bytes;
    EXPECT_TRUE(bytes == expected) << workers;
  }
}

/// How often `stages` give each result in 2000 epochs.
std::map<std::string, int> outcomes(const Image& image, const std::string& stages) {
  const SampleSourcePtr source = apply_stages(images(image), stages, "images");
  std::map<std::string, int> counts;
  for (int epoch = 0; epoch < 2000; ++epoch) ++counts[pixels_of(*source, epoch)];
  return counts;
}

TEST(Images, FlipsAndCropsAreDrawnUniformly) {
  const std::map<std::string, int> flips = outcomes(pattern_image(), "flip");
  ASSERT_EQ(flips.size(), 2u);
  for (const auto& [pixels, count] : flips) EXPECT_NEAR(count, 1000, 120);
  const std::map<std::string, int> rare = outcomes(pattern_image(), "vflip=0.1");
  EXPECT_NEAR(rare.at(staged(pattern_image(), "vflip=1")), 200, 70);
  const std::map<std::string, int> crops = outcomes(pattern_image(3, 4), "crop=2x3");
  ASSERT_EQ(crops.size(), 4u) << "two rows by two columns";
  for (const auto& [pixels, count] : crops) EXPECT_NEAR(count, 500, 110);
}

/// The part of `image` that the stage changed, as a fraction of its pixels.
std::vector<double> erased_fractions(const std::string& stages) {
  Image white(40, 50, 3);
  std::ranges::fill(white.pixels, 255);
  const SampleSourcePtr source = apply_stages(images(white), stages, "images");
  std::vector<double> fractions;
  for (int epoch = 0; epoch < 300; ++epoch) {
    const std::string pixels = pixels_of(*source, epoch);
    fractions.push_back(static_cast<double>(std::ranges::count(pixels, '\7')) / 6000);
  }
  return fractions;
}

TEST(Images, EraseTakesTheGivenArea) {
  for (const double fraction : erased_fractions("erase=1,scale=0.1:0.2,fill=7")) {
    EXPECT_GT(fraction, 0.08);
    EXPECT_LT(fraction, 0.22);
  }
  const std::vector<double> half = erased_fractions("erase,fill=7");
  EXPECT_NEAR(static_cast<double>(std::ranges::count(half, 0)), 150, 40);
}

/// A batch of torchvision's MixUp, by the weight of its labels.
std::vector<float> mixed_with_previous(const std::vector<float>& values, size_t rows,
                                       double weight) {
  const size_t size = values.size() / rows;
  std::vector<float> out;
  for (size_t i = 0; i < values.size(); ++i) {
    const float other = values[(i + values.size() - size) % values.size()];
    out.push_back(other * static_cast<float>(1 - weight) + values[i] * static_cast<float>(weight));
  }
  return out;
}

TEST(Images, MixupIsThatOfTorchvision) {
  const auto& golden = image_goldens()["mixup"];
  std::vector<float> values(144);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const double weight = golden["labels"][1][1];
  const auto expected = golden["images"].get<std::vector<float>>();
  const std::vector<float> definition = mixed_with_previous(values, 3, weight);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(definition[i], expected[i], 2e-5);

  std::vector<uint8_t> bytes(values.begin(), values.end());
  Dataset data;
  data.columns = {{"image", Tensor::of<uint8_t>({3, 3, 4, 4}, bytes)},
                  {"label", Tensor::of<int64_t>({3}, std::vector<int64_t>{0, 1, 2})}};
  Reader reader(mixup(make_source(data), {.classes = 3}), {.batch = 3});
  double first_weight = 0;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (const Batch& batch : reader) {
      EXPECT_EQ(batch.find("label")->str(), "f32[3, 3]");
      const double drawn = batch.find("label")->at(4);
      EXPECT_NEAR(batch.find("label")->at(3), 1 - drawn, 1e-6) << "the class of sample 0";
      EXPECT_NE(drawn, first_weight);
      first_weight = drawn;
      const std::vector<float> mixed = mixed_with_previous(values, 3, drawn);
      for (size_t i = 0; i < mixed.size(); ++i) {
        EXPECT_NEAR(batch.find("image")->at(static_cast<int64_t>(i)), mixed[i], 1e-4);
      }
    }
  }
}

TEST(Images, MixedShardsOfRanksAreThoseOfTheWholeBatch) {
  for (const std::string stages : {"mixup,classes=3", "cutmix=2,classes=3"}) {
    const SampleSourcePtr source =
        apply_stages(images(pattern_image(), 10), "crop=9|" + stages, "images");
    std::vector<std::string> bytes(2);
    for (const int world : {1, 2}) {
      for (int rank = 0; rank < world; ++rank) {
        Reader reader(source,
                      {.batch = 4 / world, .shuffle_seed = 3, .rank = rank, .world = world});
        const Batch& batch = *reader.next();
        bytes[static_cast<size_t>(world - 1)].append(
            static_cast<const char*>(batch.columns[0].second.data()),
            static_cast<size_t>(batch.columns[0].second.bytes()));
      }
    }
    EXPECT_TRUE(bytes[0] == bytes[1]) << stages;
  }
}

TEST(Images, CutmixPastesByTheWeightOfTheLabels) {
  Image black(20, 30, 3), white(20, 30, 3);
  std::ranges::fill(white.pixels, 255);
  Tensor pixels(DType::u8, {2, 3, 20, 30});
  black.copy_to_chw(pixels.as<uint8_t>().first(1800));
  white.copy_to_chw(pixels.as<uint8_t>().subspan(1800));
  Dataset data;
  data.columns = {{"image", pixels},
                  {"label", Tensor::of<int64_t>({2}, std::vector<int64_t>{0, 1})}};
  Reader reader(cutmix(make_source(data), {.classes = 2}), {.batch = 2});
  int partly = 0;
  for (int epoch = 0; epoch < 30; ++epoch) {
    for (const Batch& batch : reader) {
      EXPECT_EQ(batch.find("image")->dtype(), DType::u8);
      double sum = 0;
      for (int64_t i = 0; i < 1800; ++i) sum += batch.find("image")->at(i);
      const double pasted = sum / 255 / 1800;
      EXPECT_NEAR(batch.find("label")->at(1), pasted, 1e-6);
      partly += pasted > 0 && pasted < 1;
    }
  }
  EXPECT_GT(partly, 20);
}

TEST(Images, RandomStagesAreKnown) {
  using Names = std::vector<std::string>;
  const auto stages = [](const std::string& text, augment::Size image = {}) {
    return random_stages(text, image, "d|" + text);
  };
  EXPECT_EQ(stages("resize=9|center_crop=8|pad=1|normalize,mean=0,std=1"), Names());
  EXPECT_EQ(stages("flip|pad=1|crop=8|rotate=9|flip"), (Names{"flip", "crop", "rotate"}));
  EXPECT_EQ(stages("vflip|resized_crop=8|color_jitter,hue=0.1|erase=1|mixup"),
            (Names{"vflip", "resized_crop", "color_jitter", "erase", "mixup"}));
  EXPECT_EQ(stages("cutmix"), Names{"cutmix"});
  EXPECT_EQ(stages("flip=1|vflip=0|rotate=90:90|rotate=0|erase=0|one_hot"), Names());
  EXPECT_EQ(stages("color_jitter,brightness=0,hue=0|color_jitter,contrast=2:2"), Names());
  EXPECT_EQ(stages("color_jitter,brightness=2:2,hue=0.1:0.1"), Names{"color_jitter"})
      << "in a random order";
  EXPECT_EQ(stages("resized_crop=8,scale=1:1,ratio=1:1"), Names());
  EXPECT_EQ(stages("resized_crop=8,scale=1:1"), Names{"resized_crop"});
}

TEST(Images, ACropToTheWholeImageIsNotRandom) {
  using Names = std::vector<std::string>;
  const auto is_random = [](const std::string& text, augment::Size image) {
    return random_stages(text, image, "d|" + text) == Names{"crop"};
  };
  EXPECT_FALSE(is_random("crop=28", {28, 28}));
  EXPECT_TRUE(is_random("crop=28", {28, 30}));
  EXPECT_TRUE(is_random("crop=28", {}));
  EXPECT_FALSE(is_random("resize=28x30|crop=28x30", {}));
  EXPECT_FALSE(is_random("resize=28|flip=1|crop=28", {9, 9}));
  EXPECT_TRUE(is_random("resize=28|crop=28", {9, 10}));
  EXPECT_TRUE(is_random("resize=28|crop=28", {}));
  EXPECT_FALSE(is_random("center_crop=28|crop=28", {}));
  EXPECT_FALSE(is_random("pad=2:1|crop=30x32", {28, 28}));
  EXPECT_TRUE(is_random("pad=2|crop=28", {28, 28}));
  EXPECT_EQ(open_data("digits?limit=9|crop=28").random_stages, Names());
  EXPECT_EQ(open_data("digits?limit=9|crop=27").random_stages, Names{"crop"});
}

TEST(Images, MistakesOfStagesAreNamed) {
  const auto expect_error = [](const std::string& stages, const std::string& message) {
    expect_user_error([&] { apply_stages(images(pattern_image()), stages, "d|" + stages); },
                      "data 'd|" + stages + "'" + message);
  };
  expect_error("flp", ", stage 'flp': no stage 'flp' (did you mean 'flip'?)");
  expect_error("flip,p=1", ", stage 'flip,p=1': no option 'p'");
  expect_error("flip=2", ", stage 'flip=2': flip: '2' must be a number from 0 to 1");
  expect_error("flip=0.1,0.2", ", stage 'flip=0.1,0.2': '0.2' is not option=value");
  expect_error("pad=1,fill=1,fill=2",
               ", stage 'pad=1,fill=1,fill=2': option 'fill' is given twice");
  expect_error("pad=1,fill=1.5", ", stage 'pad=1,fill=1.5': fill must be an integer");
  expect_error("pad=1:2:3", ", stage 'pad=1:2:3': a border is N, X:Y or LEFT:TOP:RIGHT:BOTTOM");
  expect_error("pad=1,mode=edg",
               ", stage 'pad=1,mode=edg': mode=edg must be one of constant, edge, reflect, "
               "symmetric (did you mean 'edge'?)");
  expect_error("crop", ", stage 'crop': needs a size, as in crop=224 or crop=224x320");
  expect_error("crop=0", ", stage 'crop=0': '0' is no number of pixels from 1 to 65535");
  expect_error("crop=1x2x3", ", stage 'crop=1x2x3': a size is N or HEIGHTxWIDTH");
  expect_error("resized_crop=8,scale=0.5", ", stage 'resized_crop=8,scale=0.5': scale=0.5 must be");
  expect_error("rotate", ", stage 'rotate': needs an angle in degrees, as in rotate=15");
  expect_error("color_jitter=1", ", stage 'color_jitter=1': the stage has no value");
  expect_error("color_jitter",
               ", stage 'color_jitter': needs a setting, as in color_jitter,bright");
  expect_error("blur", ", stage 'blur': no stage 'blur'; there are 'flip', 'crop', 'one_hot'");
  expect_error("normalize,mean=0", ", stage 'normalize,mean=0': needs std");
  expect_error("normalize,mean=0:0,std=1", ": normalize: mean has 2 values, but the images have 3");
  expect_error("normalize,mean=0,std=1|flip", ", stage 'flip': normalize must follow");
  expect_error("normalize,mean=0,std=1|normalize,mean=0,std=1",
               ", stage 'normalize,mean=0,std=1': the images are normalized twice");
  expect_error("mixup,classes=3|flip", ", stage 'flip': mixup, cutmix or one_hot must be the last");
  expect_error("one_hot,classes=3|mixup,classes=3", ", stage 'mixup,classes=3': mixup, cutmix or");
  for (const char* stage : {"mixup", "one_hot"}) {
    expect_error(stage, ": one_hot, mixup and cutmix need an i64 column of labels: classes=N");
  }
  expect_error("crop=13", ": sample 0 of 'images': crop=13x13 is larger than the image of 12x17");
  expect_error("pad=12,mode=reflect",
               ": sample 0 of 'images': a border of 12 pixels cannot be reflected from an image of "
               "12x17");
  Dataset table;
  table.columns = {{"x", Tensor::of<float>({1, 2}, std::vector<float>{1, 2})}};
  expect_user_error([&] { apply_stages(make_source(table), "flip", "t"); },
                    "data 't': stages need a column of images, u8[3, H, W] or u8[1, H, W]; there "
                    "are x f32[2]");
  expect_user_error([&] { mixup(make_source(table), {.classes = 2}); },
                    "mixup and cutmix need a column of images");
  expect_user_error([&] { mixup(images(pattern_image()), {.alpha = 0, .classes = 3}); },
                    "mixup and cutmix need an alpha above 0");
  expect_user_error(
      [&] { cutmix(cutmix(images(pattern_image()), {.classes = 3}), {.classes = 3}); }, "mixup");
  expect_user_error(
      [&] {
        augment_images(images(pattern_image()), {.normalize = {{{0}, {0}}}});
      },
      "normalize: a std must be positive");
  Reader few(mixup(images(pattern_image(), 3), {.classes = 2}), {.batch = 3});
  expect_user_error([&] { few.next(); }, "sample 2 of 'images': label 2 is not below 2");
}

}  // namespace
}  // namespace fluid::image_test
