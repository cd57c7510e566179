// Windows of a text file.

#include <gtest/gtest.h>

#include "frontend/readers/spec.h"
#include "ir/atomic_file.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace fluid::text_test {
namespace {

class Text : public ::testing::Test {
 protected:
  void SetUp() override { write_file_atomically(file_, std::string_view("abcdefghijklmnopqrst")); }

  std::string spec(const std::string& options) const { return "text:" + file_ + "?" + options; }

  /// The windows of a column, each as a string.
  std::vector<std::string> windows(const std::string& options, const std::string& column) const {
    const Dataset data = open_data(spec(options)).dataset();
    const Tensor& bytes = *data.find(column);
    const auto length = static_cast<size_t>(bytes.shape()[1]);
    std::vector<std::string> list;
    for (size_t i = 0; i < static_cast<size_t>(data.samples()); ++i) {
      const auto row = bytes.as<uint8_t>().subspan(i * length, length);
      list.emplace_back(row.begin(), row.end());
    }
    return list;
  }

  TempDir dir_;
  std::string file_ = dir_.file("t.txt");
};

using Windows = std::vector<std::string>;

TEST_F(Text, TargetsFollowTheText) {
  EXPECT_EQ(windows("length=5", "text"), (Windows{"abcde", "fghij", "klmno"}));
  EXPECT_EQ(windows("length=5", "target"), (Windows{"bcdef", "ghijk", "lmnop"}));
}

TEST_F(Text, WindowsMayOverlap) {
  EXPECT_EQ(windows("length=8&stride=4", "text"), (Windows{"abcdefgh", "efghijkl", "ijklmnop"}));
}

TEST_F(Text, TheEndIsHeldOut) {
  EXPECT_EQ(windows("length=1&split=val", "text"), Windows{"s"});
  EXPECT_EQ(windows("length=1&split=test", "target"), Windows{"t"});
  EXPECT_EQ(windows("length=17", "target"), Windows{"bcdefghijklmnopqr"});
}

TEST_F(Text, RejectsWhatDoesNotFit) {
  expect_user_error([&] { open_data(spec("length=18")); },
                    "data 'text:" + file_ + "?length=18': '" + file_ +
                        "': the split has 18 bytes, but a window of length=18 needs one more than "
                        "its length");
  expect_user_error([&] { open_data("text:" + dir_.file("none")); }, "none");
  write_file_atomically(file_, std::string(200'000, 'a'));
  expect_user_error([&] { open_data(spec("length=90000&stride=1")); },
                    "90000 windows of 90000 bytes are too large; use a larger stride=");
}

}  // namespace
}  // namespace fluid::text_test
