// Scans of text files: their cache, and changes of the files.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "frontend/files/byte_source.h"
#include "frontend/readers/reader.h"
#include "frontend/readers/spec.h"
#include "ir/atomic_file.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace fluid::text_scan_test {
namespace {

namespace fs = std::filesystem;

class TextScans : public ::testing::Test {
 protected:
  /// Writes a data file as if it had been written a while ago.
  void write_old(const std::string& path, const std::string& text) const {
    write_plain(path, text);
    fs::last_write_time(path, modified_);
  }
  SampleSourcePtr open(const std::string& spec, OpenOptions options = {}) const {
    options.cache_dir = cache_;
    return open_data(spec, "train", options).source;
  }
  std::vector<fs::path> cached() const {
    std::vector<fs::path> files;
    if (!fs::exists(cache_)) return files;
    for (const auto& entry : fs::directory_iterator(cache_)) files.push_back(entry.path());
    std::ranges::sort(files);
    return files;
  }
  static std::string values_of(const SampleSource& source) {
    std::string all = source.table()->to_json();
    std::vector<Tensor> values = sample_buffers(source.columns(), 1);
    for (int64_t i = 0; i < source.samples(); ++i) {
      source.read(i, {}, sample_addresses(values, 0));
      all += "\n" + source.location(i) + " ";
      for (const Tensor& value : values) {
        all.append(static_cast<const char*>(value.data()), static_cast<size_t>(value.bytes()));
      }
    }
    for (const std::string& error : source.skipped().errors) all += "\n" + error;
    return all;
  }

  TempDir dir_;
  std::string path_ = dir_.file("t"), cache_ = dir_.file("cache/scans");
  fs::file_time_type modified_ = fs::file_time_type::clock::now() - std::chrono::hours(1);
};

/// The mean of a column shows whether a table was learned again.
TEST_F(TextScans, AreReadFromTheCache) {
  const std::string spec = "csv:" + path_ + "?normalize=1&memory=0";
  const auto mean = [&] { return open(spec)->table()->moments.at("a").mean; };
  write_old(path_, "a\n1\n3\n");
  EXPECT_EQ(mean(), 2);
  ASSERT_EQ(cached().size(), 2u) << "that of training data, and that of data read by its table";
  write_old(path_, "a\n5\n7\n");  // the size and the time are those of the text before
  EXPECT_EQ(mean(), 2) << "not scanned";
  const ColumnTablePtr table = open(spec)->table();
  write_old(path_, "a\nx\n7\n");
  open(spec, {.training_table = table});  // a scan would find the line that is no number

  write_old(path_, "a\n5\n7\n");
  fs::last_write_time(path_, modified_ + std::chrono::seconds(1));
  EXPECT_EQ(mean(), 6) << "the time has changed";
  write_old(path_, "a\n5\n10\n");
  EXPECT_EQ(mean(), 7.5) << "the size has changed";

  write_old(path_, "a\n5\n30\n");
  for (const fs::path& file : cached()) {
    std::string bytes = read_file(file);
    bytes[bytes.size() - 1] ^= 1;
    write_plain(file, bytes);
  }
  EXPECT_EQ(mean(), 17.5) << "the cache is damaged";
  write_old(path_, "a\n5\n40\n");
  EXPECT_EQ(mean(), 17.5) << "and was replaced";
}

/// A header that lacks a key, with the checksum of its bytes, as another version might write it.
TEST_F(TextScans, OfAnotherVersionAreIgnored) {
  constexpr int64_t kChecksum = 8, kChecked = 16;  // offsets in the file
  const std::string spec = "csv:" + path_ + "?normalize=1&memory=0";
  for (const std::string key : {"\"records\"", "\"sections\"", "\"splits\""}) {
    write_old(path_, "a\n1\n3\n");
    open(spec);
    ASSERT_FALSE(cached().empty());
    for (const fs::path& file : cached()) {
      std::string bytes = read_file(file);
      const size_t at = bytes.find(key);
      ASSERT_NE(at, std::string::npos);
      bytes[at + 1] = '_';
      write_plain(file, bytes);
      const uint64_t checksum = FileBytes(file).hash(kChecked);
      std::memcpy(bytes.data() + kChecksum, &checksum, sizeof checksum);
      write_plain(file, bytes);
    }
    EXPECT_EQ(open(spec)->table()->moments.at("a").mean, 2) << key;
  }
}

/// Sparse files stand for large scans.
TEST_F(TextScans, TakeLimitedSpaceInTheCache) {
  write_old(path_, "a\n1\n3\n");
  open("csv:" + path_ + "?memory=0");
  const size_t scans = cached().size();
  for (const std::string name : {"data-1.scan", "data-1.scan.tmp.1.0"}) {
    write_plain(cache_ + "/" + name, "");
    fs::resize_file(cache_ + "/" + name, uint64_t{1} << 31);
    fs::last_write_time(cache_ + "/" + name, modified_);
  }
  open("csv:" + path_ + "?memory=0&columns=a");
  EXPECT_FALSE(fs::exists(cache_ + "/data-1.scan"));
  EXPECT_TRUE(fs::exists(cache_ + "/data-1.scan.tmp.1.0")) << "a process may be writing it";
  EXPECT_GT(cached().size(), scans + 1);
}

TEST_F(TextScans, OfFilesInMemoryOrJustWrittenAreNotKept) {
  write_old(path_, "a\n1\n3\n");
  open("csv:" + path_);
  write_plain(path_, "a\n1\n3\n");
  open("csv:" + path_ + "?memory=0");
  EXPECT_TRUE(cached().empty());
  write_old(path_, "a\n1\n3\n");
  write_plain(dir_.file("file"), "");
  cache_ = dir_.file("file/no/directory");
  EXPECT_EQ(open("csv:" + path_ + "?memory=0")->samples(), 2);
}

TEST_F(TextScans, InTheCacheHoldAllThatWasFound) {
  std::string csv = "a,k,part,y\n", jsonl;
  for (int i = 0; i < 4000; ++i) {
    const std::string n = std::to_string(i), part = i % 3 == 0 ? "val" : "train";
    csv += (i % 7 == 0 ? "" : n) + ",\"k" + std::to_string(i % 5) + "\n\"," + part + "," +
           (i % 100 == 9 ? "bad" : n) + "\n";
    jsonl += R"({"f": )" + n + (i == 3000 ? ".5" : "") + R"(, "v": [1, )" + n + R"(], "k": ")" +
             std::to_string(i % 5) + R"(", "part": ")" + part + "\"" + (i == 77 ? "\n" : "}\n");
  }
  write_old(dir_.file("t.csv"), csv);
  write_old(dir_.file("t.jsonl"), jsonl);
  for (const std::string& spec : std::vector<std::string>{
           "csv:" + dir_.file("t.csv") + "?label=y&categories=k&missing=drop&normalize=1&memory=0",
           "jsonl:" + dir_.file("t.jsonl") + "?memory=0"}) {
    for (const std::string split : {"&split=part", "&split=part:val", ""}) {
      SCOPED_TRACE(spec + split);
      const std::string full = spec + (split.empty() && spec[0] == 'c' ? "&drop=part" : split);
      const OpenOptions options = {.bad_records = BadRecords::skip};
      const std::string scanned = values_of(*open(full, options));
      const size_t files = cached().size();
      EXPECT_EQ(values_of(*open(full, options)), scanned);
      EXPECT_EQ(cached().size(), files) << "found in the cache";
      EXPECT_EQ(values_of(*open_data(full, "train", options).source), scanned) << "no cache";
    }
  }
}

TEST_F(TextScans, FilesThatChangeAreErrors) {
  for (const std::string kind : {"csv:", "jsonl:"}) {
    const std::string row = kind == "csv:" ? "1\n" : "{\"a\": 1}\n";
    std::string text = kind == "csv:" ? "a\n" : "";
    for (int i = 0; i < 20'000; ++i) text += row;
    write_old(path_, text);
    const SampleSourcePtr source = open_data(kind + path_ + "?memory=0").source;
    Reader reader(source, {.batch = 8});
    ASSERT_EQ(reader.next()->size, 8);
    std::ofstream(path_, std::ios::app) << row;
    expect_user_error([&] { Reader(source, {.batch = 8}).next(); },
                      "cannot read '" + path_ + "': it was changed while it was read");
    fs::resize_file(path_, 40);
    expect_user_error([&] { source->read(10'000, {}, std::vector<std::byte*>{nullptr}); },
                      "cannot read '" + path_ + "': it became shorter while it was read");
  }
}

/// A change that keeps the size and the time of a file is found if other records result.
TEST_F(TextScans, RecordsThatMoveAreErrors) {
  std::string text = "a\n";
  for (int i = 0; i < 20'000; ++i) text += "1\n";
  write_old(path_, text);
  const SampleSourcePtr source = open_data("csv:" + path_ + "?memory=0").source;
  text[text.size() / 2] = '1';  // joins two lines
  ASSERT_EQ(std::ranges::count(text, '\n'), 20'000);
  write_old(path_, text);
  expect_user_error([&] { source->read(10'000, {}, std::vector<std::byte*>{nullptr}); },
                    "cannot read '" + path_ + "': it was changed while it was read");
}

}  // namespace
}  // namespace fluid::text_scan_test
