// The kinds of data "npy" and "npz": arrays on disk and in memory.

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "frontend/files/npy.h"
#include "frontend/files/zip.h"
#include "frontend/readers/array_source.h"
#include "frontend/readers/reader.h"
#include "frontend/readers/spec.h"
#include "ir/atomic_file.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/image_files.h"
#include "tests/support/temp_dir.h"

namespace fluid::npy_columns_test {
namespace {

/// A line of /proc/self/status in bytes, such as "VmHWM:".
int64_t status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kib = 0;
    if (word == name && status >> kib) return kib * 1024;
  }
  return 0;
}

std::string epoch_of(const SampleSourcePtr& source) {
  Reader reader(source, {.batch = 3, .shuffle_seed = 1, .workers = 2});
  std::string bytes;
  for (const Batch& batch : reader) {
    for (const auto& [name, column] : batch.columns) {
      bytes.append(static_cast<const char*>(column.data()), static_cast<size_t>(column.bytes()));
    }
  }
  return bytes;
}

/// Writes the header of a .npy file of f32[samples, width], and a hole instead of the elements.
void write_sparse_npy(const std::string& path, int64_t samples, int64_t width,
                      const std::string& is_fortran = "False") {
  write_npy(path, Tensor(DType::f32, {1, width}));
  std::string header = "{'descr': '<f4', 'fortran_order': " + is_fortran + ", 'shape': (" +
                       std::to_string(samples) + ", " + std::to_string(width) + "), }";
  header.resize(128 - 10 - 1, ' ');
  header += '\n';
  const std::string start("\x93NUMPY\1\0\x76\0", 10);
  write_plain(path, start + header);
  std::filesystem::resize_file(
      path, 128 + static_cast<uintmax_t>(samples) * static_cast<uintmax_t>(width) * 4);
}

TEST(NpyColumns, OnDiskAreThoseInMemory) {
  TempDir dir;
  std::vector<float> x(40);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * i);
  write_npy(dir.file("x.npy"), Tensor::of<float>({10, 2, 2}, x));
  write_npy(dir.file("y.npy"), Tensor::of<int64_t>({10}, std::vector<int64_t>(10, 7)));
  const std::string spec = "npy:x=" + dir.file("x.npy") + ",y=" + dir.file("y.npy");
  const SampleSourcePtr disk = open_data(spec + "?memory=0").source;
  EXPECT_EQ(disk->in_memory(), nullptr);
  EXPECT_NE(open_data(spec).source->in_memory(), nullptr);
  EXPECT_EQ(disk->columns()[0].str(), "x f32[2, 2]");
  EXPECT_EQ(disk->location(3),
            "sample 3 of 'npy:x=" + dir.file("x.npy") + ",y=" + dir.file("y.npy") + "'");
  EXPECT_TRUE(epoch_of(disk) == epoch_of(open_data(spec + "?memory=1").source));
  EXPECT_TRUE(epoch_of(open_data(spec + "?memory=0&val=0.3&limit=5").source) ==
              epoch_of(open_data(spec + "?val=0.3&limit=5").source));
}

TEST(NpyColumns, ReadFilesLargerThanMemory) {
  TempDir dir;
  const int64_t samples = 20'000'000, width = 1000;  // 80 GB, which the file system does not store
  const std::string path = dir.file("x.npy");
  write_sparse_npy(path, samples, width);
  const float marker = 42;
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(128 + (samples - 1) * width * 4);
  file.write(reinterpret_cast<const char*>(&marker), sizeof marker);
  file.close();
  const int64_t before = status_bytes("VmHWM:");
  const DataSource data = open_data("npy:x=" + path);
  Reader reader(data.source, {.batch = 1000, .shuffle_seed = 1, .workers = 2});
  for (int i = 0; i < 50; ++i) ASSERT_EQ(reader.next()->size, 1000);  // 200 MB
  reader.seek({7, samples / 2});
  ASSERT_NE(reader.next(), nullptr);
  EXPECT_LT(status_bytes("VmHWM:") - before, int64_t{64} << 20);
  Reader last(first_samples(data.source, samples), {.batch = 4});
  last.seek({0, samples - 1});
  EXPECT_EQ(last.next()->find("x")->at(0), marker);
}

/// A run that resumes near the end of an epoch of many samples computes next to nothing, whether
/// the order of the epoch is a list of indices or a function.
TEST(NpyColumns, EpochsAreResumedAtOnce) {
  TempDir dir;
  for (const int64_t samples : {int64_t{1} << 20, int64_t{100'000'000}}) {
    const std::string path = dir.file("x.npy");
    write_sparse_npy(path, samples, 1);
    const SampleSourcePtr source = open_data("npy:x=" + path + "?memory=0").source;
    const std::clock_t begin = std::clock();
    Reader reader(source, {.batch = 64, .shuffle_seed = 1, .workers = 2});
    reader.seek({5, samples - 64});
    ASSERT_EQ(reader.next()->size, 64);
    EXPECT_EQ(reader.next(), nullptr);
    EXPECT_EQ(reader.position().epoch, 6);
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    EXPECT_LT(seconds, 1) << samples;
  }
}

/// Integers that are widened, and arrays in both orders, in memory and on disk.
TEST(NpyColumns, AreThoseOfNumpy) {
  TempDir dir;
  const std::string path = dir.file("x.npy");
  const nlohmann::json golden = testing::golden_json("npy.json");
  for (const nlohmann::json& c : golden.at("cases")) {
    SCOPED_TRACE(c.at("descr").get<std::string>() + c.at("order").get<std::string>());
    const auto expected = c.at("values").get<std::vector<double>>();
    write_plain(path, bytes_of_hex(c.at("file").get<std::string>()));
    const Tensor whole = read_npy(path);
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(whole.at(static_cast<int64_t>(i)), expected[i]);
    }
    for (const std::string memory : {"0", "1"}) {
      Reader reader(open_data("npy:x=" + path + "?memory=" + memory).source, {.batch = 3});
      const Tensor& x = *reader.next()->find("x");
      ASSERT_EQ(x.str(), whole.str());
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ(x.at(static_cast<int64_t>(i)), expected[i]) << "memory=" << memory;
      }
    }
  }
}

/// Arrays whose tiles are cut in each dimension, in memory and in a temporary file.
TEST(NpyColumns, InFortranOrderAreTransposedInTiles) {
  using Shape = std::vector<int64_t>;
  for (const Shape& shape : {Shape{60, 5000}, Shape{5000, 7}, Shape{5, 40, 60}, Shape{4200, 13, 41},
                             Shape{0, 3}, Shape{3}, Shape{2, 2'200'000}}) {
    int64_t elements = 1;
    std::string dims;
    for (const int64_t extent : shape) elements *= extent, dims += std::to_string(extent) + ", ";
    std::string header = "{'descr': '<f4', 'fortran_order': True, 'shape': (" + dims + "), }";
    header.resize(128 - 10 - 1, ' ');
    std::vector<float> values(static_cast<size_t>(elements));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    const std::string text =
        std::string("\x93NUMPY\1\0\x76\0", 10) + header + "\n" +
        std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    const auto file = std::make_shared<MemoryBytes>(text);
    for (const int64_t memory_limit : {int64_t{0}, int64_t{1} << 30}) {
      SCOPED_TRACE(dims + " limit " + std::to_string(memory_limit));
      const ArrayColumn column = npy_column("x", file, 0, file->size(), "f", memory_limit);
      std::vector<float> rows(values.size());
      column.file->read(column.offset, std::as_writable_bytes(std::span(rows)));
      size_t wrong = 0;
      for (int64_t i = 0; i < elements; ++i) {
        int64_t rest = i, expected = 0;
        for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) {
          int64_t stride = 1;
          for (size_t before = 0; before < d; ++before) stride *= shape[before];
          expected += rest % shape[d] * stride;
        }
        wrong += rows[static_cast<size_t>(i)] != static_cast<float>(expected) ? 1 : 0;
      }
      EXPECT_EQ(wrong, 0u);
    }
  }
}

TEST(NpyColumns, InFortranOrderTakeBoundedMemory) {
  TempDir dir;
  const std::string path = dir.file("x.npy");
  write_sparse_npy(path, 80'000, 1000, "True");  // 320 MB
  const int64_t before = status_bytes("VmHWM:");
  Reader reader(open_data("npy:x=" + path).source, {.batch = 8, .shuffle_seed = 1, .workers = 1});
  EXPECT_EQ(reader.samples(), 80'000);
  ASSERT_EQ(reader.next()->size, 8);
  EXPECT_LT(status_bytes("VmHWM:") - before, int64_t{128} << 20);
}

TEST(NpyColumns, MistakesAreNamed) {
  TempDir dir;
  const std::string path = dir.file("x.npy"), spec = "npy:x=" + path;
  write_npy(path, Tensor(DType::f32, {}));
  expect_user_error([&] { open_data(spec); },
                    path + ": a column needs a first dimension that counts samples");
  write_npy(path, Tensor(DType::boolean, {4}));
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-2, std::ios::end).put(2);
  }
  expect_user_error([&] { open_data(spec); }, path + ": holds a bool that is neither 0 nor 1");
  Reader reader(open_data(spec + "?memory=0").source, {.batch = 1});
  EXPECT_NE(reader.next(), nullptr);
  EXPECT_NE(reader.next(), nullptr);
  expect_user_error([&] { reader.next(); }, path + ": holds a bool that is neither 0 nor 1");
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  expect_user_error([&] { open_data(spec); }, path + ": holds 3 bytes of data, but");
  write_npy(path, Tensor(DType::f32, {4}));
  Reader cut(open_data(spec + "?memory=0").source, {.batch = 4});
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  expect_user_error([&] { cut.next(); },
                    "cannot read '" + path + "': it became shorter while it was read");
}

/// tests/golden/images.py packs x = arange(12).reshape(4, 3) as f32, y = [3, 2, 2, 1] as i64, and x
/// in Fortran order as z.
std::string golden_npz(const TempDir& dir, const std::string& name) {
  write_plain(dir.file(name), bytes_of_hex(image_goldens()[name].get<std::string>()));
  return dir.file(name);
}

TEST(NpzColumns, AreThoseOfNumpy) {
  TempDir dir;
  for (const std::string name : {"savez", "savez_compressed"}) {
    for (const std::string memory : {"0", "1"}) {
      SCOPED_TRACE(name + memory);
      const SampleSourcePtr source =
          open_data("npz:" + golden_npz(dir, name) + "?memory=" + memory).source;
      EXPECT_EQ(source->in_memory() != nullptr, memory == "1");
      ASSERT_EQ(source->columns().size(), 3u);
      EXPECT_EQ(source->find("x")->str(), "x f32[3]");
      Reader reader(source, {.batch = 4});
      const Batch& batch = *reader.next();
      for (int64_t i = 0; i < 12; ++i) {
        EXPECT_EQ(batch.find("x")->at(i), static_cast<double>(i));
        EXPECT_EQ(batch.find("z")->at(i), static_cast<double>(i));
      }
      for (int64_t i = 0; i < 4; ++i) {
        EXPECT_EQ(batch.find("y")->integer(i),
                  (std::vector<int64_t>{3, 2, 2, 1})[static_cast<size_t>(i)]);
      }
    }
  }
}

TEST(NpzColumns, ChecksumsOfStoredMembersAreVerified) {
  TempDir dir;
  const std::string path = golden_npz(dir, "savez");
  std::string bytes = read_file(path);
  const SampleSourcePtr good = open_data("npz:" + path + "?memory=0&limit=3&x=y2").source;
  EXPECT_NO_THROW(good->check_files());
  bytes[bytes.find("PK\1\2") - 1] ^= 1;  // the end of the last member
  write_plain(path, bytes);
  const std::string message = "'" + path + "': member 'z.npy' is damaged: its CRC-32 differs";
  const SampleSourcePtr bad = open_data("npz:" + path + "?memory=0&limit=3&x=y2").source;
  expect_user_error([&] { bad->check_files(); }, message);
  expect_user_error([&] { open_data("npz:" + path); }, message);
}

TEST(NpzColumns, DamageIsNamed) {
  TempDir dir;
  const std::string path = golden_npz(dir, "savez_compressed");
  const std::string good = bytes_of_hex(image_goldens()["savez_compressed"].get<std::string>());
  const auto expect_error = [&](const std::string& bytes, const std::string& message) {
    write_plain(path, bytes);
    expect_user_error([&] { open_data("npz:" + path); }, "'" + path + "'" + message);
  };
  expect_error("PK", " is not a ZIP archive");
  expect_error(good.substr(10), ": damaged ZIP archive");
  std::string changed = good;
  for (size_t i = 60; i < 80; ++i) changed[i] = '\xee';
  expect_error(changed, ": damaged ZIP archive");
  const size_t entry = good.find("PK\1\2");
  changed = good;
  changed[entry + 8] |= 1;
  expect_error(changed, ": member 'x.npy' is encrypted or compressed by another method");
  changed = good;
  for (size_t at = changed.find(".npy"); at != std::string::npos; at = changed.find(".npy")) {
    changed.replace(at, 4, ".txt");
  }
  expect_error(changed, " holds no .npy file");
}

}  // namespace
}  // namespace fluid::npy_columns_test
