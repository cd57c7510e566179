// Readers of data that exceeds the memory limit: the samples are those of data in memory, and the
// memory stays small.

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "frontend/files/csv.h"
#include "frontend/files/line_reader.h"
#include "frontend/files/record_file.h"
#include "frontend/readers/reader.h"
#include "frontend/readers/spec.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace fluid::bounded_memory_test {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
#ifdef FLUID_SANITIZED
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

/// A line of /proc/self/status in bytes, such as "VmHWM:".
int64_t status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kib = 0;
    if (word == name && status >> kib) return kib * 1024;
  }
  return 0;
}

/// All that a source says about its samples, and their bytes.
std::string contents_of(const SampleSource& source) {
  std::string all = source.name() + "\n";
  for (const Column& column : source.columns()) {
    all += column.str() + ":";
    for (const std::string& name : source.classes(column.name)) all += " " + name;
    all += "\n";
  }
  all += source.table() != nullptr ? source.table()->to_json() : "no table";
  for (const std::string& error : source.skipped().errors) all += "\n" + error;
  std::vector<Tensor> values = sample_buffers(source.columns(), 1);
  for (int64_t i = 0; i < source.samples(); ++i) {
    source.read(i, {}, sample_addresses(values, 0));
    all += "\n" + std::to_string(source.source_index(i)) + " " + source.location(i) + ": ";
    for (const Tensor& value : values) {
      all.append(static_cast<const char*>(value.data()), static_cast<size_t>(value.bytes()));
    }
  }
  return all;
}

class BoundedMemory : public ::testing::Test {
 protected:
  /// Checks that data on disk is that in memory.
  void expect_same(const std::string& spec, const std::string& split = "train") const {
    SCOPED_TRACE(spec);
    const std::string with = spec + (spec.find('?') == std::string::npos ? "?" : "&") + "memory=";
    const OpenOptions options = {.bad_records = BadRecords::drop};
    const SampleSourcePtr disk = open_data(with + "0", split, options).source;
    EXPECT_EQ(disk->in_memory(), nullptr);
    EXPECT_LT(disk->resident_bytes(), 8192) << "no more than the indices of selected samples";
    EXPECT_TRUE(contents_of(*disk) == contents_of(*open_data(with + "1", split, options).source));
  }

  TempDir dir_;
};

TEST_F(BoundedMemory, RowsOfCsvOnDiskAreThoseInMemory) {
  std::string text = "\n\"a b\",size,kind,label,part\n";
  for (int i = 0; i < 500; ++i) {
    text += std::to_string(i * 0.37) + "," + (i % 7 == 0 ? "nan" : std::to_string(i)) + ",\"k" +
            std::to_string(i % 11) + (i % 5 == 0 ? "\n" : "") + "\"," +
            (i == 99 ? "bad" : std::to_string(i % 3)) + "," + (i % 4 == 1 ? "val" : "train") +
            "\n" + (i % 50 == 0 ? "\n" : "");
  }
  const std::string csv = "csv:" + dir_.file("t.csv");
  write_plain(dir_.file("t.csv"), text);
  const std::string columns = "?categories=kind&drop=part&label=label&missing=";
  for (const std::string missing : {"drop", "mean", "-1.5", "error"}) {
    expect_same(csv + columns + missing);
    expect_same(csv + columns + missing + "&normalize=1&classes=1");
  }
  expect_same(csv + "?categories=kind,label&label=label&missing=mean&normalize=1&split=part");
  expect_same(csv + "?categories=kind&label=label,size&missing=drop&split=part:val", "val");
  expect_same(csv + "?categories=kind&drop=part&missing=mean&normalize=1&val=0.25&limit=40", "val");
}

TEST_F(BoundedMemory, LinesOfJsonOnDiskAreThoseInMemory) {
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text += R"({"x": [[)" + std::to_string(i) + ", 2], [3, 4]], \"f\": " + std::to_string(i * 0.1) +
            R"(, "id": )" + std::to_string((int64_t{1} << 53) - 1 - i % 50) + R"(, "mixed": )" +
            (i == 200 ? "0.5" : std::to_string(i)) + R"(, "name": "n)" + std::to_string(i % 13) +
            R"(", "part": ")" + (i % 3 == 0 ? "val" : "train") + "\"}\n" +
            (i == 7 ? "{\"x\": 1}\n\n" : "");
  }
  write_plain(dir_.file("t.jsonl"), text);
  const std::string jsonl = "jsonl:" + dir_.file("t.jsonl");
  expect_same(jsonl);
  expect_same(jsonl + "?split=part", "val");
  expect_same(jsonl + "?columns=mixed,name&val=0.5");
}

TEST_F(BoundedMemory, TextsOnDiskAreThoseInMemory) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += std::to_string(i * i) + (i % 9 == 0 ? "\n" : " ");
  const std::string path = dir_.file("t.gz");
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  expect_same("text:" + path + "?length=16");
  expect_same("text:" + path + "?length=16&split=val");
  std::filesystem::create_directory(dir_.file("d"));
  write_plain(dir_.file("d/a"), text);
  write_plain(dir_.file("d/b"), "another document");
  expect_same("text:" + dir_.file("d") + "?length=9");
}

/// The fields of the records that `csv` reads, each record after its line; then the error, if any.
std::string records_of(CsvParser& csv) {
  std::string records;
  try {
    while (csv.next()) {
      records += std::to_string(csv.line());
      for (const std::string_view field : csv.fields()) records += "|" + std::string(field);
      records += ";";
    }
  } catch (const UserError& error) {
    records += error.what();
  }
  return records;
}

/// The records of a file are those of its whole text, and the end of a record is found in each part
/// of the text, or not yet.
TEST_F(BoundedMemory, RecordsOfAFileAreThoseOfItsText) {
  const RecordSyntax& syntax = csv_record_syntax();
  for (const std::string text :
       {"\xef\xbb\xbf\r\n"
        "a,b\r\n\r\n1,\"two\r\nlines, \"\"quoted\"\"\" \r\n\n\"3\",4\r\n5,\r",
        "a\n1,\"2\n3\n", "a\n\"1\n\" 2\n", "a\n\"1\"\rb\n", "", "\n\n", "a", "\"\"", "a\r",
        "a \"b\nc\" \"\n , \"\n\"\"", "a,b\n\"1\n\",2\n3,4"}) {
    SCOPED_TRACE(text);
    CsvParser whole(text, "f");
    const auto bytes = std::make_shared<MemoryBytes>(text);
    const RecordFile file(bytes, index_records(bytes, syntax, "f"), syntax, "f");
    std::string records;
    for (int64_t i = 0; i < file.records(); ++i) {
      CsvParser csv;
      const TextRecord record = file.read(i);
      csv.restart(record, "f");
      records += records_of(csv);
      for (size_t end = 0; end < record.text.size(); ++end) {
        ASSERT_EQ(syntax.end_of_record(record.text.substr(0, end), 0), std::string::npos) << end;
      }
    }
    EXPECT_EQ(records, records_of(whole));
  }
}

/// Short lines, empty ones and long ones, in an order that does not show in the first lines.
TEST_F(BoundedMemory, BlocksOfUnevenRecordsAreSmall) {
  constexpr int64_t kMaxBytes = 4096;
  std::string text;
  std::vector<std::string> lines;
  const auto add = [&](const std::string& line) { text += lines.emplace_back(line + "\n"); };
  for (int i = 0; i < 3000; ++i) add(std::to_string(i));
  text += std::string(3 * kMaxBytes, '\n');
  for (int i = 0; i < 300; ++i) {
    add(std::string(100'000, 'x') + std::to_string(i));
    add(std::to_string(i));
  }
  const auto bytes = std::make_shared<MemoryBytes>(text);
  const RecordIndex index = index_records(bytes, line_syntax(), "f");
  ASSERT_EQ(index.records, std::ssize(lines));
  std::vector<std::array<int64_t, 3>> starts(static_cast<size_t>(index.blocks->size()) /
                                             sizeof(std::array<int64_t, 3>));
  index.blocks->read(0, std::as_writable_bytes(std::span(starts)));
  for (size_t block = 0; block + 1 < starts.size(); ++block) {
    const int64_t size = starts[block + 1][0] - starts[block][0];
    EXPECT_TRUE(size <= kMaxBytes || starts[block + 1][2] - starts[block][2] == 1) << block;
  }
  EXPECT_EQ(starts.back(),
            (std::array<int64_t, 3>{std::ssize(text), std::ranges::count(text, '\n') + 1,
                                    index.records}));
  const RecordFile file(bytes, index, line_syntax(), "f");
  const auto samples = static_cast<size_t>(file.records());
  for (size_t i = 0; i < samples; ++i) {
    const size_t record = i * 7 % samples;  // neither in order nor block by block
    EXPECT_TRUE(file.read(static_cast<int64_t>(record)).text == lines[record]) << record;
  }
  EXPECT_EQ(file.location(3000), "f:" + std::to_string(3001 + 3 * kMaxBytes));
}

/// Returns by how much the resident memory exceeds in `use`, at its peak, what it was before.
int64_t peak_growth(const std::function<void()>& use) {
  std::ofstream("/proc/self/clear_refs") << 5;  // resets the peak to the present size
  const int64_t before = status_bytes("VmHWM:");
  use();
  return status_bytes("VmHWM:") - before;
}

/// Checks that opening the data and reading some of it takes less than 8 MiB of memory.
void expect_bounded(const std::string& spec, int64_t samples) {
  SCOPED_TRACE(spec);
  const int64_t growth = peak_growth([&] {
    Reader reader(open_data(spec).source, {.batch = 8, .shuffle_seed = 1, .workers = 1});
    EXPECT_EQ(reader.samples(), samples);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(reader.next()->size, 8);
  });
  if (kSanitized) return;
  EXPECT_LT(growth, 8 * kMiB);
}

/// 70 MB of text, above the default limit, with 23 million numbers.
TEST_F(BoundedMemory, IsThatOfSomeBlocksOfAText) {
  constexpr int64_t kRows = 70'000;
  std::string line;
  for (int i = 0; i < 333; ++i) line += std::to_string(i % 80 + 10) + (i == 332 ? "\n" : ",");
  std::string names;
  for (int i = 0; i < 333; ++i) names += "c" + std::to_string(i) + (i == 332 ? "\n" : ",");
  {
    std::ofstream csv(dir_.file("t.csv"));
    csv << names;
    for (int64_t i = 0; i < kRows; ++i) csv << line;
  }
  expect_bounded("csv:" + dir_.file("t.csv"), kRows);
}

/// 1000 numbers of one digit in each row: 8 MB of text, 16 MB of f32 and 16 MB of f64.
TEST_F(BoundedMemory, IsThatOfAPartOfTheRows) {
  constexpr int64_t kRows = 4000;
  std::string line;
  for (int i = 0; i < 1000; ++i) line += std::to_string(i % 10) + (i == 999 ? "\n" : ",");
  std::string names;
  for (int i = 0; i < 1000; ++i) names += "c" + std::to_string(i) + (i == 999 ? "\n" : ",");
  {
    std::ofstream csv(dir_.file("t.csv")), jsonl(dir_.file("t.jsonl"));
    csv << names;
    for (int64_t i = 0; i < kRows; ++i) csv << line;
    line.back() = ']';
    for (int64_t i = 0; i < kRows / 2; ++i) jsonl << "{\"x\": [" << line << "}\n";
  }
  expect_bounded("csv:" + dir_.file("t.csv") + "?memory=0&label=c9&normalize=1", kRows);
  expect_bounded("jsonl:" + dir_.file("t.jsonl") + "?memory=0", kRows / 2);
}

TEST_F(BoundedMemory, IsThatOfAPartOfACompressedText) {
  constexpr int64_t kBytes = 100 * kMiB;  // above the default limit
  const std::string path = dir_.file("t.gz"), piece(kMiB, 'x');
  const gzFile file = gzopen(path.c_str(), "wb1");
  for (int64_t i = 0; i < kBytes; i += kMiB) gzwrite(file, piece.data(), kMiB);
  gzclose(file);
  expect_bounded("text:" + path + "?length=1024&split=val&memory=0", kBytes / 10 / 1024 - 1);
}

/// A little-endian number of `bytes` bytes.
std::string number(uint64_t value, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i);
  return text;
}

/// Writes a ZIP archive of the .npy file f32[samples, 1024] of zeros, compressed.
void write_compressed_npz(const std::string& path, int64_t samples) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                       std::to_string(samples) + ", 1024), }";
  header.resize(128 - 10 - 1, ' ');
  std::string content = std::string("\x93NUMPY\1\0\x76\0", 10) + header + "\n";
  content.resize(128 + static_cast<size_t>(samples) * 4096);
  std::string packed(compressBound(content.size()), '\0');
  z_stream stream = {};
  deflateInit2(&stream, 1, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(content.data());
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  const std::string fields =
      number(20, 2) + number(0, 2) + number(8, 2) + number(0, 4) +
      number(crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size()), 4) +
      number(packed.size(), 4) + number(content.size(), 4) + number(5, 2) + number(0, 2);
  const std::string local = "PK\3\4" + fields + "x.npy" + packed;
  const std::string entry = "PK\1\2" + number(20, 2) + fields + std::string(14, '\0') + "x.npy";
  write_plain(path, local + entry + "PK\5\6" + number(0, 4) + number(1, 2) + number(1, 2) +
                        number(entry.size(), 4) + number(local.size(), 4) + number(0, 2));
}

TEST_F(BoundedMemory, IsThatOfAPartOfACompressedArray) {
  constexpr int64_t kSamples = 20'000;  // 80 MB, above the default limit
  write_compressed_npz(dir_.file("t.npz"), kSamples);
  expect_bounded("npz:" + dir_.file("t.npz"), kSamples);
}

/// A quoted field without an end, in a file that the file system does not store.
TEST_F(BoundedMemory, LimitsRecords) {
  const std::string path = dir_.file("t");
  write_plain(path, "a,b\n1,\"");
  std::filesystem::resize_file(path, 2 * kMaxRecordBytes + 4096);
  expect_user_error([&] { open_data("csv:" + path); }, path + ":2: the record has more than 64");
  write_plain(path, "{\"a\": 1}\n{");
  std::filesystem::resize_file(path, 2 * kMaxRecordBytes + 4096);
  expect_user_error([&] { open_data("jsonl:" + path); }, path + ":2: the line has more than 64");
  write_plain(path, "{\"a\": \"text\"}\n{");
  std::filesystem::resize_file(path, 2 * kMaxRecordBytes + 4096);
  expect_user_error([&] { open_data("text:" + path + "?key=a&length=2&end=10"); },
                    path + ":2: the line has more than 64");
}

}  // namespace
}  // namespace fluid::bounded_memory_test
