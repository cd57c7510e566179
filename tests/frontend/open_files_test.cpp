#include "frontend/files/open_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>

#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace fluid::open_files_test {
namespace {

int64_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

std::string text_of(const FileBytes& file) {
  std::string text(static_cast<size_t>(file.size()), ' ');
  file.read(0, {reinterpret_cast<std::byte*>(text.data()), text.size()});
  return text;
}

TEST(OpenFiles, AreFewOfMany) {
  TempDir dir;
  OpenFiles files;
  const int count = static_cast<int>(OpenFiles::kMaxOpen) + 20;
  for (int i = 0; i < count; ++i) {
    write_plain(dir.file(std::to_string(i)), "file " + std::to_string(i));
  }
  const int64_t before = open_descriptors();
  const std::shared_ptr<const FileBytes> first = files.open(dir.file("0"));
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(text_of(*files.open(dir.file(std::to_string(i)))), "file " + std::to_string(i));
    }
  }
  EXPECT_LE(open_descriptors() - before, static_cast<int64_t>(OpenFiles::kMaxOpen) + 1);
  EXPECT_EQ(text_of(*first), "file 0");
  EXPECT_EQ(files.open(dir.file("5")), files.open(dir.file("5")));
  std::filesystem::remove(dir.file("1"));
  expect_user_error([&] { files.open(dir.file("1")); }, "cannot read '" + dir.file("1") + "'");
}

}  // namespace
}  // namespace fluid::open_files_test
