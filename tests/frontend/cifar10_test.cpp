#include "frontend/readers/cifar10.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "frontend/readers/spec.h"
#include "ir/atomic_file.h"
#include "tests/support/data_folder.h"
#include "tests/support/errors.h"
#include "tests/support/file_bytes.h"
#include "tests/support/temp_dir.h"

namespace fluid::cifar10_test {
namespace {

std::vector<int64_t> labels(const Dataset& data) {
  const auto values = data.find("label")->as<int64_t>();
  return {values.begin(), values.end()};
}

TEST(Cifar10, ReadsPlainAndGzippedFilesInTheOrderOfTheirNames) {
  TempDir dir;
  write_gz(dir.file("data_batch_2_part.bin.gz"), cifar10_record(7));
  write_plain(dir.file("data_batch_1.bin"), cifar10_record(0) + cifar10_record(9));
  write_plain(dir.file("test_batch.bin"), cifar10_record(5));
  write_plain(dir.file("batches.meta.txt"), "airplane\n");
  const Dataset train = read_cifar10(dir.path());
  EXPECT_EQ(labels(train), (std::vector<int64_t>{0, 9, 7}));
  EXPECT_EQ(train.classes.at("label").at(9), "truck");
  const Tensor& image = *train.find("image");
  EXPECT_EQ(image.str(), "u8[3, 3, 32, 32]");
  for (int64_t i = 0; i < image.numel(); ++i) ASSERT_EQ(image.at(i), 1.0 + i / 1024 % 3) << i;
  EXPECT_EQ(labels(open_data("cifar10:" + dir.path(), "test").dataset()), std::vector<int64_t>{5});
  EXPECT_EQ(open_data("cifar10:" + dir.path() + "?limit=2").dataset().samples(), 2);
}

TEST(Cifar10, HoldsOutRowsOfTheTrainingFiles) {
  TempDir dir;
  std::string records;
  for (int i = 0; i < 10; ++i) records += cifar10_record(static_cast<uint8_t>(i));
  write_plain(dir.file("data_batch_1.bin"), records);
  const std::string spec = "cifar10:" + dir.path() + "?val=0.3&seed=1";
  std::vector<int64_t> all = labels(open_data(spec).dataset());
  const std::vector<int64_t> held = labels(open_data(spec, "test").dataset());
  EXPECT_EQ(all.size(), 7u);
  EXPECT_EQ(labels(open_data(spec + "&split=val").dataset()), held);
  all.insert(all.end(), held.begin(), held.end());
  std::ranges::sort(all);
  EXPECT_EQ(all, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  expect_user_error([&] { open_data("cifar10:" + dir.path() + "?seed=1"); },
                    "option seed needs val=0.2, the share of rows held out");
}

TEST(Cifar10, ReadsAFileOnceThatIsThereGzippedToo) {
  TempDir dir;
  write_gz(dir.file("data_batch_1.bin.gz"), cifar10_record(7));
  EXPECT_EQ(labels(read_cifar10(dir.path())), std::vector<int64_t>{7});
  write_plain(dir.file("data_batch_1.bin"), cifar10_record(3));
  EXPECT_EQ(labels(read_cifar10(dir.path())), std::vector<int64_t>{3});
}

TEST(Cifar10, ReadsTheOfficialImages) {
  const std::string directory = data_folder() + "/cifar10";
  if (!std::filesystem::exists(directory)) {
    GTEST_SKIP() << "no CIFAR-10 files in " << directory << "; set FLUID_DATA";
  }
  const Dataset train = read_cifar10(directory);
  const std::vector<int64_t> all = labels(train);
  ASSERT_GE(train.samples(), 4000);
  // A frog, then two trucks.
  EXPECT_EQ(std::vector(all.begin(), all.begin() + 3), (std::vector<int64_t>{6, 9, 9}));
  double sum = 0;
  const auto pixels = train.find("image")->as<uint8_t>();
  for (const uint8_t pixel : pixels) sum += pixel;
  EXPECT_NEAR(sum / static_cast<double>(pixels.size()) / 255, 0.473, 0.01);
}

}  // namespace
}  // namespace fluid::cifar10_test
