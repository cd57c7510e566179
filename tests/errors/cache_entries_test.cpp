// Tests foreign files in the kernel cache directory: nothing waits for them, nothing runs them, and
// one message reports them.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "ir/atomic_file.h"
#include "tests/support/count_of.h"
#include "tests/support/fluidrun_test.h"

namespace fluid::cache_entries_test {
namespace {

using fluid::testing::count_of;

namespace fs = std::filesystem;

class CacheEntries : public FluidrunTest {
 protected:
  void SetUp() override {
    FluidrunTest::SetUp();
    if (IsSkipped()) return;
    unsetenv("FLUID_KERNEL_CACHE");
    ASSERT_EQ(train().code, 0);
    for (const auto& entry : fs::directory_iterator(dir_.file("cache"))) {
      if (entry.path().extension() == ".o") entries_.push_back(entry.path());
    }
    ASSERT_GE(entries_.size(), 2u);
    parameters_ = read_file(dir_.file("w.safetensors"));
  }

  Result train() const {
    return run("train line.fir --data synthetic-linear?n=50 --batch 10 --save w.safetensors");
  }

  /// Training with `put` at the place of each entry. Returns all that it says.
  std::string train_with(const std::function<void(const fs::path&)>& put) {
    for (const fs::path& entry : entries_) {
      fs::rename(entry, dir_.file(entry.filename().string()));
      put(entry);
    }
    before_ = "timeout 20 ";
    const Result result = train();
    EXPECT_EQ(result.code, 0) << result.output;
    EXPECT_EQ(read_file(dir_.file("w.safetensors")), parameters_);
    EXPECT_NE(result.output.find(" 0 from the cache"), std::string::npos) << result.output;
    return result.output;
  }
  void expect_one_warning(const std::string& output) const {
    EXPECT_EQ(count_of(output, "is not used: "), 1) << output;
    EXPECT_NE(output.find("cache entry '" + dir_.file("cache")), std::string::npos) << output;
    EXPECT_EQ(count_of(output, "not kept"), 0) << output;
  }

  std::vector<fs::path> entries_;
  std::string parameters_;
};

TEST_F(CacheEntries, MayBeDirectories) {
  expect_one_warning(train_with([](const fs::path& at) { fs::create_directory(at); }));
}

TEST_F(CacheEntries, MayBeFifos) {
  expect_one_warning(
      train_with([](const fs::path& at) { ASSERT_EQ(mkfifo(at.c_str(), 0600), 0) << at; }));
  EXPECT_NE(train().output.find(" 0 kernels compiled"), std::string::npos) << "they are replaced";
}

TEST_F(CacheEntries, MayBeLinksToADevice) {
  expect_one_warning(train_with([](const fs::path& at) { fs::create_symlink("/dev/zero", at); }));
}

/// The entry is undamaged; only its key differs.
TEST_F(CacheEntries, MayHoldAnotherKernel) {
  size_t next = 0;
  expect_one_warning(train_with([&](const fs::path& at) {
    const fs::path& other = entries_[++next % entries_.size()];
    const fs::path moved = dir_.file(other.filename().string());
    fs::copy_file(fs::exists(moved) ? moved : other, at);
  }));
}

TEST_F(CacheEntries, ThatCannotBeWrittenAreNamedOnce) {
  fs::remove_all(dir_.file("cache"));
  before_ = "ulimit -f 1; ";  // kernels do not fit, parameters do
  const Result result = train();
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_EQ(count_of(result.output, "are not kept"), 1) << result.output;
  EXPECT_NE(result.output.find("': File too large\n"), std::string::npos) << result.output;
  EXPECT_EQ(read_file(dir_.file("w.safetensors")), parameters_);
  for (const auto& file : fs::directory_iterator(dir_.file("cache"))) {
    EXPECT_EQ(file.path().filename(), "kernels.evicted") << "not an entry";
  }
}

}  // namespace
}  // namespace fluid::cache_entries_test
