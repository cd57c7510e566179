// The kinds of data that hold image files.

#include <gtest/gtest.h>

#include <filesystem>

#include "frontend/readers/reader.h"
#include "frontend/readers/spec.h"
#include "tests/support/errors.h"
#include "tests/support/image_files.h"
#include "tests/support/temp_dir.h"

namespace fluid::folder_test {
namespace {

/// cats: 3 images, dogs: 2, one in a directory of its own. All have 27 x 40 pixels.
class ImageFolderTest : public ::testing::Test {
 protected:
  ImageFolderTest() {
    for (const char* name : {"dogs/puppies", "cats", "empty"}) {
      std::filesystem::create_directories(dir_.file(name));
    }
    add("dogs/b.jpg", "420.jpg");
    add("dogs/puppies/a.png", "palette.png");
    add("cats/2.JPG", "444.jpg");
    add("cats/1.jpeg", "gray.jpg");
    add("cats/3.png", "alpha.png");
    write_plain(dir_.file("cats/notes.txt"), "not an image");
    write_plain(dir_.file("cats/.hidden.jpg"), "not an image");
  }
  void add(const std::string& path, const std::string& golden) {
    write_plain(dir_.file(path), golden_image_file(golden));
  }
  std::string spec(const std::string& rest = "") const { return "folder:" + dir_.path() + rest; }

  TempDir dir_;
};

TEST_F(ImageFolderTest, ClassesAreTheDirectoriesInOrder) {
  const SampleSourcePtr source = open_data(spec()).source;
  EXPECT_EQ(source->classes("label"), (std::vector<std::string>{"cats", "dogs"}));
  EXPECT_EQ(source->columns()[0].str(), "image u8[3, 27, 40]");
  EXPECT_EQ(source->columns()[1].str(), "label i64");
  EXPECT_EQ(source->find_location("label", 1), "'" + dir_.file("dogs/b.jpg") + "'");
  EXPECT_EQ(source->find_location("label", 2), "");
  Reader reader(source, {.batch = 5});
  const Batch& batch = *reader.next();
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(batch.find("label")->integer(i), i < 3 ? 0 : 1);
  }
  EXPECT_EQ(source->location(0), "'" + dir_.file("cats/1.jpeg") + "'");
  EXPECT_EQ(source->location(4), "'" + dir_.file("dogs/puppies/a.png") + "'");
  for (const auto& file : image_goldens()["files"]) {
    if (file["name"] != "444.jpg") continue;
    const std::string pixels = bytes_of_hex(file["pixels"].get<std::string>());
    for (int64_t i = 0; i < 27 * 40; ++i) {  // the second sample
      const int64_t green = 3 * 27 * 40 + 27 * 40 + i;
      ASSERT_EQ(batch.find("image")->integer(green),
                static_cast<uint8_t>(pixels[static_cast<size_t>(3 * i + 1)]));
    }
  }
}

TEST_F(ImageFolderTest, TakesTheOptionsOfASpec) {
  const DataSource data = open_data(spec("?val=0.4&label=class&limit=2|crop=20x30|flip"));
  EXPECT_EQ(data.source->samples(), 2);
  EXPECT_EQ(data.source->columns()[0].str(), "image u8[3, 20, 30]");
  EXPECT_EQ(data.source->columns()[1].name, "class");
  EXPECT_EQ(data.source->classes("class").size(), 2u);
  EXPECT_EQ(open_data(spec("?val=0.4"), "test").source->samples(), 2);
  EXPECT_EQ(
      common_rows(*open_data(spec("?val=0.4")).source, *open_data(spec("?val=0.4"), "test").source),
      0);
  expect_user_error([&] { data.dataset(); }, "data '" + dir_.path() + "' is not in memory");
  Reader mixed(open_data(spec("|crop=20|mixup")).source, {.batch = 5});
  EXPECT_EQ(mixed.next()->find("label")->str(), "f32[5, 2]");
}

TEST_F(ImageFolderTest, OneHotLabelsAreThoseOfImagesThatAreNotMixed) {
  Reader plain(open_data(spec("|crop=20")).source, {.batch = 5});
  Reader encoded(open_data(spec("|crop=20|one_hot")).source, {.batch = 5});
  const Batch& a = *plain.next();
  const Batch& b = *encoded.next();
  EXPECT_EQ(b.find("image")->str(), a.find("image")->str());
  ASSERT_EQ(b.find("label")->str(), "f32[5, 2]");
  for (int64_t i = 0; i < 5; ++i) {
    for (int64_t c = 0; c < 2; ++c) {
      EXPECT_EQ(b.find("label")->at(2 * i + c), a.find("label")->integer(i) == c ? 1 : 0);
    }
  }
  Reader few(open_data(spec("|crop=20|one_hot,classes=1")).source, {.batch = 5});
  expect_user_error([&] { few.next(); }, ": label 1 is not below 1");
}

TEST_F(ImageFolderTest, BadImagesAreNamedOrSkipped) {
  write_plain(dir_.file("cats/2.JPG"), golden_image_file("420.jpg").substr(0, 500));
  add("dogs/b.jpg", "rgb.png");  // 16 x 24
  const SampleSourcePtr all = open_data(spec()).source;
  std::filesystem::remove(dir_.file("dogs/puppies/a.png"));
  Reader reader(all, {.batch = 2, .workers = 2});
  expect_user_error([&] { reader.next(); },
                    "'" + dir_.file("cats/2.JPG") + "': damaged JPEG image");
  expect_user_error([&] { reader.next(); }, "'" + dir_.file("dogs/b.jpg") +
                                                "': the image is 16x24, but the first is 27x40");
  expect_user_error([&] { reader.next(); },
                    "cannot read '" + dir_.file("dogs/puppies/a.png") + "'");
  EXPECT_EQ(reader.next(), nullptr);
  Reader skipping(all, {.batch = 2, .workers = 2, .bad_records = BadRecords::skip});
  int64_t samples = 0;
  for (const Batch& batch : skipping) samples += batch.size;
  EXPECT_EQ(samples, 5);
  EXPECT_EQ(skipping.skipped().count, 3);
  EXPECT_TRUE(states(skipping.skipped().errors.front(), "'" + dir_.file("cats/2.JPG") + "'"));
  Reader staged(open_data(spec("|resize=8x8")).source,
                {.batch = 4, .bad_records = BadRecords::skip});
  staged.next();
  EXPECT_EQ(staged.skipped().count, 1) << "the stage gives all images one size";
  std::filesystem::remove(dir_.file("cats/2.JPG"));
  Reader odd(open_data(spec("|resize=8")).source, {.batch = 3});
  expect_user_error([&] { odd.next(); }, "'" + dir_.file("dogs/b.jpg") +
                                             "': the image is 8x12 after the stages, but the "
                                             "first is 8x11: add |resize=HxW or a crop");
}

TEST_F(ImageFolderTest, ImagesOfOtherFormatsAreBadRecords) {
  write_plain(dir_.file("cats/4.WebP"), "RIFF");
  Reader reader(open_data(spec()).source, {.batch = 6});
  expect_user_error([&] { reader.next(); },
                    "'" + dir_.file("cats/4.WebP") + "': neither a JPEG nor a PNG image");
}

TEST_F(ImageFolderTest, IsSuggestedForAPath) {
  expect_user_error([&] { open_data(dir_.path()); }, "did you mean '" + spec() + "'?");
  for (const std::string kind : {"npz", "tar", "jsonl"}) {
    const std::string path = dir_.file("x." + kind);
    expect_user_error([&] { open_data(path); }, "did you mean '" + kind + ":" + path + "'?");
  }
  write_plain(dir_.file("empty/x.tar"), "");
  expect_user_error([&] { open_data(dir_.file("empty")); }, "'tar:" + dir_.file("empty") + "'?");
}

TEST_F(ImageFolderTest, WithoutImagesIsAnError) {
  expect_user_error([&] { open_data("folder:" + dir_.file("none")); },
                    "'" + dir_.file("none") + "' is not a directory that can be read");
  expect_user_error([&] { open_data("folder:" + dir_.file("cats")); },
                    "'" + dir_.file("cats") + "' has no directory with .jpg, .jpeg or .png files");
}

}  // namespace
}  // namespace fluid::folder_test
