#include "ir/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace fluid::atomic_file_test {
namespace {

size_t files_in(const std::string& directory) {
  const std::filesystem::directory_iterator all(directory);
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

TEST(AtomicFile, ReplacesTheWholeContents) {
  TempDir dir;
  const std::string path = dir.file("a.bin");
  write_file_atomically(path, "a long first version");
  write_file_atomically(path, "second");
  EXPECT_EQ(read_file(path), "second");
  EXPECT_EQ(files_in(dir.path()), 1u);
}

TEST(AtomicFile, LeavesNothingWithoutCommit) {
  TempDir dir;
  {
    AtomicFile file(dir.file("a.bin"));
    file.write("half of it");
  }
  EXPECT_EQ(files_in(dir.path()), 0u);
}

TEST(AtomicFile, PassesOverTemporariesThatAnotherProcessLeft) {
  TempDir dir;
  const std::string path = dir.file("a.bin");
  std::string stale;
  {
    AtomicFile file(path);
    stale = std::filesystem::directory_iterator(dir.path())->path().string();
  }
  const size_t number = stale.rfind('.') + 1;
  const int last = std::stoi(stale.substr(number));
  for (const int next : {last + 1, last + 2}) {
    std::ofstream(stale.substr(0, number) + std::to_string(next)) << "not ours";
  }
  write_file_atomically(path, "saved");
  EXPECT_EQ(read_file(path), "saved");
  EXPECT_EQ(files_in(dir.path()), 3u) << "what another process left stays";
}

TEST(AtomicFile, FollowsSymbolicLinks) {
  TempDir dir;
  write_file_atomically(dir.file("real"), "old");
  std::filesystem::create_symlink("real", dir.file("link"));
  write_file_atomically(dir.file("link"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(dir.file("link")));
  EXPECT_EQ(read_file(dir.file("real")), "new");
}

TEST(AtomicFile, ReportsAFullDiskAndKeepsTheOldFile) {
  TempDir dir;
  const std::string path = dir.file("a.bin");
  write_file_atomically(path, "old");
  expect_user_error([] { write_file_atomically("/dev/full", "x"); },
                    "cannot write '/dev/full': No space left on device");
  std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit saved = {};
  getrlimit(RLIMIT_FSIZE, &saved);
  struct rlimit small = saved;
  small.rlim_cur = 1000;
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string large(5000, 'x');
  expect_user_error([&] { write_file_atomically(path, large); }, "File too large");
  setrlimit(RLIMIT_FSIZE, &saved);
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(files_in(dir.path()), 1u);
}

TEST(AtomicFile, ReadsAPipeToItsEnd) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "piped", 5), 5);
  close(ends[1]);
  EXPECT_EQ(read_file("/dev/fd/" + std::to_string(ends[0])), "piped");
  close(ends[0]);
}

TEST(AtomicFile, ReportsUnwritablePaths) {
  TempDir dir;
  expect_user_error([&] { write_file_atomically(dir.file("no/such/x"), "x"); },
                    "No such file or directory");
  expect_user_error([&] { write_file_atomically(dir.path(), "x"); }, "Is a directory");
  expect_user_error([&] { read_file(dir.file("absent")); }, "No such file or directory");
  expect_user_error([&] { read_file(dir.path()); }, "Is a directory");
  expect_user_error([&] { read_file("/dev/zero"); },
                    "cannot read '/dev/zero': it is larger than 64 MiB");
}

}  // namespace
}  // namespace fluid::atomic_file_test
