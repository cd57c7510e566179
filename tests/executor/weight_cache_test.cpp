// Predict steps map precomputed weights from files that processes share
// (executor/session/precomputed_weights.h).

#include "executor/host/weight_cache.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "frontend/files/safetensors.h"
#include "frontend/fluid.h"
#include "tests/support/golden_training.h"
#include "tests/support/temp_dir.h"

namespace fluid::weight_cache_test {
namespace {

namespace fs = std::filesystem;

/// A convolution whose folded filters take 1.1 MiB.
Program network() {
  Program net("network");
  const Value x = net.data("x", {kBatch, 128, 4, 4}, f32);
  const Value h = batch_norm(conv2d(x, {.filters = 256, .kernel = 3, .bias = false}));
  net.output("y", h);
  minimize(mean(square(h - 1)), SGD{.lr = 0.1});
  return net;
}

Batch batch_of(int64_t size) {
  return {size, {{"x", testing::golden_tensor(1, {size, 128, 4, 4}).cast(f32)}}, 0};
}

std::vector<float> values_of(const Tensor& tensor) {
  const auto values = tensor.as<float>();
  return {values.begin(), values.end()};
}

std::vector<float> predict(Executor& exe, int64_t size = 2) {
  return values_of(exe.predict(batch_of(size))["y"]);
}

std::vector<fs::path> entries_in(const std::string& directory) {
  std::vector<fs::path> entries;
  if (!fs::is_directory(directory)) return entries;
  for (const auto& file : fs::directory_iterator(directory)) {
    if (file.path().extension() == ".weights") entries.push_back(file.path());
  }
  return entries;
}

/// Number of mappings of files in `directory` in this process.
int mappings_of(const std::string& directory) {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) {
    count += line.find(directory) != std::string::npos ? 1 : 0;
  }
  return count;
}

class CachedWeights : public ::testing::Test {
 protected:
  void SetUp() override {
    unsetenv("FLUID_KERNEL_CACHE");
    Executor exe(network(), cpu(), {.seed = 5});
    exe.save(file_);
    expected_ = predict(exe);
  }
  /// An executor with the parameters of a file.
  std::unique_ptr<Executor> loaded(const std::string& cache_dir) const {
    auto exe =
        std::make_unique<Executor>(network(), cpu(), ExecutorOptions{.cache_dir = cache_dir});
    exe->load(file_);
    return exe;
  }

  TempDir dir_;
  std::string cache_ = dir_.file("cache");
  std::string file_ = dir_.file("p.safetensors");
  std::vector<float> expected_;
};

TEST_F(CachedWeights, AreSharedByExecutors) {
  const auto first = loaded(cache_);
  EXPECT_EQ(predict(*first), expected_);
  ASSERT_EQ(entries_in(cache_).size(), 1u);
  EXPECT_EQ(mappings_of(cache_), 1);
  const auto written = fs::last_write_time(entries_in(cache_)[0]);
  const auto second = loaded(cache_);
  second->prepare({.predict = {2}});
  EXPECT_EQ(mappings_of(cache_), 2);                               // before the first step
  EXPECT_GT(fs::last_write_time(entries_in(cache_)[0]), written);  // the time of the last use
  EXPECT_EQ(predict(*second), expected_);
  EXPECT_EQ(entries_in(cache_).size(), 1u);
}

TEST_F(CachedWeights, AreFoundWhereverParametersComeFrom) {
  predict(*loaded(cache_));
  Executor initialised(network(), cpu(), {.seed = 5, .cache_dir = cache_});
  EXPECT_EQ(predict(initialised), expected_);
  Executor loaded_late(network(), cpu(), {.cache_dir = cache_});
  loaded_late.prepare({.predict = {2}});
  loaded_late.load(file_);
  EXPECT_EQ(predict(loaded_late), expected_);
  EXPECT_EQ(mappings_of(cache_), 2);
  EXPECT_EQ(entries_in(cache_).size(), 1u);
}

TEST_F(CachedWeights, OfOtherParametersAreNotUsed) {
  predict(*loaded(cache_));
  Executor other(network(), cpu(), {.seed = 6});
  const std::vector<float> expected = predict(other);
  EXPECT_NE(expected, expected_);
  other.save(file_);
  EXPECT_EQ(predict(*loaded(cache_)), expected);
  EXPECT_EQ(entries_in(cache_).size(), 2u);
}

TEST_F(CachedWeights, FollowAssignmentsAndTraining) {
  for (const char* start : {"computed", "mapped"}) {
    SCOPED_TRACE(start);
    const auto exe = loaded(cache_);
    const auto plain = loaded("");
    EXPECT_EQ(predict(*exe), predict(*plain));
    const auto change = [&](Executor& e) {
      const std::string name = e.parameters().back();
      Tensor value = e.parameter(name).copy();
      value.as<float>()[0] += 0.25F;
      e.set_parameter(name, value);
    };
    change(*exe);
    change(*plain);
    EXPECT_EQ(predict(*exe), predict(*plain));
    for (Executor* e : {&*exe, &*plain}) e->run(batch_of(2));
    EXPECT_EQ(predict(*exe), predict(*plain));
    EXPECT_NE(predict(*exe), expected_);
    EXPECT_EQ(entries_in(cache_).size(), 1u);  // a change leaves no entry
  }
}

TEST_F(CachedWeights, StayMappedWhenTheArenaGrows) {
  const auto exe = loaded(cache_);
  EXPECT_EQ(predict(*exe), expected_);
  EXPECT_EQ(values_of(exe->eval(batch_of(64))["y"]).size(), 64u * 256 * 4);
  EXPECT_EQ(mappings_of(cache_), 1);
  EXPECT_EQ(predict(*exe), expected_);
  const std::string name = exe->parameters().front();
  Tensor value = exe->parameter(name).copy();
  for (float& x : value.as<float>()) x *= 2;
  exe->set_parameter(name, value);
  const std::vector<float> changed = predict(*exe);
  EXPECT_NE(changed, expected_);
  exe->eval(batch_of(256));
  EXPECT_EQ(predict(*exe), changed);
  EXPECT_EQ(values_of(exe->parameter(name)), values_of(value));
}

TEST_F(CachedWeights, LeaveParametersReadable) {
  predict(*loaded(cache_));
  const auto exe = loaded(cache_);
  predict(*exe);
  const auto plain = loaded("");
  for (const std::string& name : exe->parameters()) {
    EXPECT_EQ(values_of(exe->parameter(name)), values_of(plain->parameter(name))) << name;
  }
  const std::string copy = dir_.file("copy.safetensors");
  exe->save(copy);
  EXPECT_EQ(read_safetensors(copy).tensors.size(), read_safetensors(file_).tensors.size());
  fs::rename(copy, file_);
  EXPECT_EQ(predict(*loaded("")), expected_);
}

TEST_F(CachedWeights, ReplaceADamagedEntry) {
  for (const char* damage : {"cut", "empty", "header", "flipped", "longer"}) {
    SCOPED_TRACE(damage);
    predict(*loaded(cache_));
    const std::string path = entries_in(cache_).at(0);
    const auto size = fs::file_size(path);
    if (std::string(damage) == "cut") fs::resize_file(path, size / 2);
    if (std::string(damage) == "empty") fs::resize_file(path, 0);
    if (std::string(damage) == "longer") fs::resize_file(path, size + 1);
    if (std::string(damage) == "header" || std::string(damage) == "flipped") {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      const std::streamoff at = std::string(damage) == "header" ? 9 : std::streamoff(size) / 2;
      file.seekg(at);
      const auto byte = static_cast<char>(file.get() ^ 1);
      file.seekp(at);
      file.put(byte);
    }
    EXPECT_EQ(predict(*loaded(cache_)), expected_);
    ASSERT_EQ(entries_in(cache_).size(), 1u);
    EXPECT_EQ(fs::file_size(path), size);
    const auto again = loaded(cache_);
    again->prepare({.predict = {2}});
    EXPECT_EQ(mappings_of(cache_), 1);
  }
}

TEST_F(CachedWeights, AreComputedWithoutADirectory) {
  const std::string file = dir_.file("file");
  std::ofstream(file) << "not a directory";
  for (const std::string& directory : {std::string(), file, std::string("/proc/weights")}) {
    EXPECT_EQ(predict(*loaded(directory)), expected_) << directory;
  }
}

TEST_F(CachedWeights, MayBeWrittenByManyAtOnce) {
  std::vector<std::thread> threads;
  std::vector<std::vector<float>> predicted(4);
  for (auto& values : predicted) {
    threads.emplace_back([&] { values = predict(*loaded(cache_)); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& values : predicted) EXPECT_EQ(values, expected_);
  EXPECT_EQ(entries_in(cache_).size(), 1u);
  EXPECT_EQ(mappings_of(cache_), 0);
  for (const auto& file : fs::directory_iterator(cache_)) {
    EXPECT_EQ(file.path().string().find(".tmp"), std::string::npos) << file.path();
  }
}

TEST_F(CachedWeights, DoNotServeTraining) {
  const auto exe = loaded(cache_);
  exe->prepare({.train = {2}, .predict = {2}});
  predict(*exe);
  EXPECT_TRUE(entries_in(cache_).empty());
}

std::string key(char digit) { return std::string(32, digit); }

std::vector<std::byte> some_values(int64_t bytes) {
  return std::vector<std::byte>(static_cast<size_t>(bytes), std::byte{7});
}

TEST(WeightCache, RemovesTheLeastRecentlyUsedEntries) {
  const TempDir dir;
  const auto values = some_values(3 << 20);
  const WeightCache cache(dir.path(), 7 << 20);
  const auto now = fs::file_time_type::clock::now();
  for (const char digit : {'0', '1'}) {
    cache.store(key(digit), values, 2);
    const auto path = dir.file("w" + key(digit) + ".weights");
    fs::last_write_time(path, now - std::chrono::hours(digit == '0' ? 2 : 1));
  }
  EXPECT_NE(cache.open(key('0'), std::ssize(values), 2), nullptr);  // used just now
  cache.store(key('2'), values, 2);
  EXPECT_NE(cache.open(key('0'), std::ssize(values), 1), nullptr);
  EXPECT_EQ(cache.open(key('1'), std::ssize(values), 1), nullptr);
  EXPECT_NE(cache.open(key('2'), std::ssize(values), 1), nullptr);
  cache.store(key('3'), some_values(4 << 20), 2);  // larger than half of the limit
  EXPECT_EQ(entries_in(dir.path()).size(), 2u);
}

TEST(WeightCache, HashDoesNotDependOnTheThreads) {
  auto values = some_values((5 << 20) + 3);
  const std::string one = hash_of_values(values, 1);
  EXPECT_EQ(hash_of_values(values, 3), one);
  values.back() = std::byte{8};
  EXPECT_NE(hash_of_values(values, 1), one);
  EXPECT_NE(hash_of_values({}, 1), one);
}

}  // namespace
}  // namespace fluid::weight_cache_test
