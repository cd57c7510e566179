#include "executor/checkpoint/result_options.h"

#include <gtest/gtest.h>

#include "frontend/program.h"

namespace fluid::result_options_test {
namespace {

using Texts = std::map<std::string, std::string>;

Texts texts(Place place, const ExecutorOptions& options, int threads = 2) {
  return result_options(Program("empty").ir(), options, place, threads);
}

const ExecutorOptions kCached{.cache_dir = "cache"};

TEST(ResultOptions, OfAPlaceAreThoseThatChangeItsResults) {
  const Texts here = texts(cpu(), kCached), there = texts(cuda(0), kCached);
  EXPECT_EQ(here.at("place"), "cpu");
  EXPECT_EQ(here.at("threads"), "2");
  EXPECT_EQ(here.at("tuning"), "off");
  EXPECT_FALSE(here.contains("workspace"));
  EXPECT_EQ(there.at("place"), "cuda");
  EXPECT_EQ(there.at("workspace"), "67108864 bytes");
  EXPECT_EQ(there.at("tuning"), "on");
  EXPECT_EQ(texts(cuda(0), {}).at("tuning"), "off") << "what is chosen by timing must be kept";
  EXPECT_FALSE(there.contains("threads"));
}

TEST(ResultOptions, ThatDifferAreNamed) {
  const Texts before = texts(cuda(0), kCached);
  ExecutorOptions options = kCached;
  options.gpu.tune = false;
  options.gpu.workspace = 1 << 20;
  EXPECT_EQ(changed_result_options(before, texts(cuda(1), options, 3)),
            "tuning off (was on), workspace 1048576 bytes (was 67108864 bytes)");
  EXPECT_EQ(changed_result_options(texts(cpu(), {}), texts(cpu(), {.cpu = {.tune = true}}, 3)),
            "threads 3 (was 2), tuning on (was off)");
}

TEST(ResultOptions, OfOnePlaceAreNotNamedWherePlacesDiffer) {
  const Texts here = texts(cpu(), kCached), there = texts(cuda(0), kCached);
  EXPECT_EQ(changed_result_options(here, there), "place cuda (was cpu)");
  EXPECT_EQ(changed_result_options(there, here), "place cpu (was cuda)");
}

/// Such checkpoints tell threads of both places, and name the place on a GPU alone.
TEST(ResultOptions, ThatWereNotToldOnceAreNoChange) {
  Texts old_here = texts(cpu(), {}), old_there = texts(cuda(0), {});
  for (const char* name : {"place", "tuning"}) old_here.erase(name);
  for (const char* name : {"tuning", "workspace"}) old_there.erase(name);
  old_there["threads"] = "4";
  EXPECT_EQ(changed_result_options(old_here, texts(cpu(), {})), "");
  EXPECT_EQ(changed_result_options(old_there, texts(cuda(0), {})), "");
  EXPECT_EQ(changed_result_options(old_here, texts(cuda(0), {})), "place cuda (was cpu)");
  EXPECT_EQ(changed_result_options(old_there, texts(cpu(), {})), "place cpu (was cuda)");
}

}  // namespace
}  // namespace fluid::result_options_test
