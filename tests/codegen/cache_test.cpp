#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "codegen/compiler.h"
#include "codegen/object_cache.h"
#include "tests/support/kernel_buffers.h"
#include "tests/support/kir_builder.h"
#include "tests/support/temp_dir.h"

namespace fluid::testing::cache_test {
namespace {

namespace fs = std::filesystem;

kir::Kernel scaled(double factor) {
  return one_block({input("x", f32, 8), output("y", f32, 8)},
                   {loop(kir::For::Kind::vector, 0, Expr::index(0), Expr::index(8),
                         {store(1, Expr::var(0), load(0, f32, Expr::var(0)) * factor)})});
}

std::vector<kir::Kernel> several() { return {scaled(2), scaled(3), scaled(5)}; }

void expect_right(const std::vector<CompiledKernel>& code) {
  const float factors[] = {2, 3, 5};
  for (size_t k = 0; k < 3; ++k) {
    float x[8], y[8] = {};
    for (int i = 0; i < 8; ++i) x[i] = static_cast<float>(i + 1);
    void* buffers[] = {x, y};
    code.at(k).body(buffers, 1, 0, 1);
    for (int i = 0; i < 8; ++i) EXPECT_EQ(y[i], factors[k] * x[i]);
  }
}

CompileStats compile_in(const std::string& directory, int threads = 1) {
  Compiler compiler({.cache_dir = directory, .threads = threads});
  const auto kernels = several();
  expect_right(compiler.compile(addresses(kernels)));
  return compiler.stats();
}

constexpr const char* kEvictionStamp = "kernels.evicted";

/// The files of a cache, without its stamp: their names and contents.
std::map<std::string, std::string> files_of(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().filename() == kEvictionStamp) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    files[entry.path().filename()] = std::string(std::istreambuf_iterator<char>(in), {});
  }
  return files;
}

class Cache : public ::testing::Test {
 protected:
  void SetUp() override { unsetenv("FLUID_KERNEL_CACHE"); }
};

TEST_F(Cache, SecondCompilerFindsEverything) {
  const TempDir dir;
  EXPECT_EQ(compile_in(dir.path()).compiled, 3);
  const CompileStats second = compile_in(dir.path());
  EXPECT_EQ(second.compiled, 0);
  EXPECT_EQ(second.cache_hits, 3);
}

TEST_F(Cache, SameKernelsGiveTheSameBytes) {
  const TempDir a, b;
  compile_in(a.path());
  compile_in(b.path(), 3);
  EXPECT_EQ(files_of(a.path()), files_of(b.path()));
}

TEST_F(Cache, EqualKernelsAreCompiledOnce) {
  std::vector<kir::Kernel> kernels = {scaled(2), scaled(2)};
  kernels[1].name = "other";
  const TempDir dir;
  Compiler compiler({.cache_dir = dir.path()});
  const auto code = compiler.compile(addresses(kernels));
  EXPECT_EQ(code[0].body, code[1].body);
  compiler.compile(addresses(kernels));
  EXPECT_EQ(compiler.stats().compiled, 1);
}

TEST_F(Cache, FlippedByteOnlyCostsACompile) {
  const TempDir dir;
  compile_in(dir.path());
  const auto whole = files_of(dir.path());
  for (const auto& [name, bytes] : whole) {
    for (size_t at : {size_t{0}, size_t{9}, bytes.size() / 2, bytes.size() - 1}) {
      std::string damaged = bytes;
      damaged[at] ^= 0x10;
      std::ofstream(dir.file(name), std::ios::binary) << damaged;
      EXPECT_EQ(compile_in(dir.path()).compiled, 1) << name << " byte " << at;
    }
    std::ofstream(dir.file(name), std::ios::binary) << bytes.substr(0, bytes.size() / 2);
    EXPECT_EQ(compile_in(dir.path()).compiled, 1);
  }
  EXPECT_EQ(files_of(dir.path()), whole);
}

TEST_F(Cache, UnusableDirectoryOnlyCostsTime) {
  EXPECT_EQ(compile_in("/proc/no-such-place").compiled, 3);
}

TEST_F(Cache, ManyWritersLeaveWholeEntries) {
  const TempDir dir;
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i) writers.emplace_back([&] { compile_in(dir.path()); });
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(compile_in(dir.path()).cache_hits, 3);
  EXPECT_EQ(files_of(dir.path()).size(), 3u);
}

std::string key(int i) { return "k" + ObjectCache::hash_digits(std::to_string(i)); }

/// Puts three entries of 1000 bytes, each an hour younger than the one before.
void put_three(const ObjectCache& cache, const TempDir& dir) {
  const auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 3; ++i) {
    cache.store(key(i), std::string(1000, 'x'));
    fs::last_write_time(dir.file(key(i) + ".o"), now - std::chrono::hours(3 - i));
  }
}

TEST_F(Cache, OldestEntriesGoFirst) {
  const TempDir dir;
  const ObjectCache cache(dir.path(), 2500);
  put_three(cache, dir);
  EXPECT_TRUE(cache.find(key(0)));  // used just now
  cache.evict();
  EXPECT_TRUE(cache.find(key(0)));
  EXPECT_FALSE(cache.find(key(1)));
  EXPECT_TRUE(cache.find(key(2)));
}

TEST_F(Cache, IsSearchedForOldEntriesOnceAMinute) {
  const TempDir dir;
  const ObjectCache cache(dir.path(), 2500);
  const auto entries = [&] { return files_of(dir.path()).size(); };
  put_three(cache, dir);
  cache.evict_if_due();
  EXPECT_EQ(entries(), 2u);
  put_three(cache, dir);
  cache.evict_if_due();
  EXPECT_EQ(entries(), 3u);
  const auto now = fs::file_time_type::clock::now();
  for (const auto last : {now - std::chrono::minutes(2), now + std::chrono::hours(2)}) {
    put_three(cache, dir);
    fs::last_write_time(dir.file(kEvictionStamp), last);  // a clock may have been set back
    cache.evict_if_due();
    EXPECT_EQ(entries(), 2u);
  }
}

TEST_F(Cache, NeitherCountsNorRemovesForeignFiles) {
  const TempDir dir;
  const std::string entry_like = key(9) + ".o";  // not written by a cache: no magic
  const std::vector<std::string> foreign = {"dataset.bin", "thesis.txt", "notes.o", entry_like,
                                            key(8) + ".o.tmp"};
  for (const std::string& name : foreign) {
    std::ofstream(dir.file(name)) << std::string(5000, 'd');
    fs::last_write_time(dir.file(name), fs::file_time_type::clock::now() - std::chrono::hours(100));
  }
  const ObjectCache roomy(dir.path(), 4000);
  put_three(roomy, dir);
  roomy.evict();
  EXPECT_EQ(files_of(dir.path()).size(), foreign.size() + 3);
  ObjectCache(dir.path(), 0).evict();
  const auto left = files_of(dir.path());
  EXPECT_EQ(left.size(), foreign.size());
  for (const std::string& name : foreign) EXPECT_TRUE(left.contains(name)) << name;
}

TEST_F(Cache, FilesOfWritersThatDiedGo) {
  const TempDir dir;
  const ObjectCache cache(dir.path(), 0);
  put_three(cache, dir);
  const std::string fresh = dir.file(key(0) + ".o.17.0.tmp");
  const std::string abandoned = dir.file(key(1) + ".o.17.1.tmp");
  for (const std::string& to : {fresh, abandoned}) fs::copy_file(dir.file(key(0) + ".o"), to);
  fs::last_write_time(fresh, fs::file_time_type::clock::now());
  fs::last_write_time(abandoned, fs::file_time_type::clock::now() - std::chrono::hours(2));
  cache.evict();
  const auto left = files_of(dir.path());
  EXPECT_EQ(left.size(), 1u);
  EXPECT_TRUE(left.contains(key(0) + ".o.17.0.tmp"));
}

}  // namespace
}  // namespace fluid::testing::cache_test
