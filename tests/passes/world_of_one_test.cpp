// A world of one process runs the same program as without data parallelism.

#include <gtest/gtest.h>

#include "frontend/optimizers.h"
#include "ir/print.h"
#include "passes/pass.h"
#include "tests/support/plain_target.h"
#include "tests/support/training.h"

namespace fluid::testing::world_of_one_test {
namespace {

std::string step_after(const std::vector<Pass>& passes, const Options& options) {
  Program net = stateful_program();
  minimize(net.ir().main().outputs[0].value, Adam{.lr = 0.01}, {.clip = {.global_norm = 0.5}});
  run_passes(net.ir(), passes, options, LibraryTarget());
  return ir::print(net.ir());
}

/// `options`: options of a program without collectives. Expects that the passes that insert
/// collectives change nothing in a world of one.
void expect_nothing_inserted(const Options& options) {
  Options several = options;
  several.world = 2;
  several.shard_optimizer = several.sync_bn = true;
  several.buckets = {.first_bytes = 8, .bytes = 100, .dtype = f16};
  Options one = several;
  one.world = 1;
  const std::vector<Pass> with_collectives = pipeline(several);
  EXPECT_EQ(with_collectives.size(), pipeline(options).size() + 4)
      << "statistics, gradients and sparse rows";
  const std::string plain = step_after(pipeline(options), options);
  EXPECT_EQ(plain.find("bucket"), std::string::npos) << plain;
  EXPECT_EQ(step_after(with_collectives, one), plain);
  EXPECT_EQ(step_after(pipeline(one), one), plain);
  EXPECT_NE(step_after(with_collectives, several).find("bucket"), std::string::npos);
}

TEST(WorldOfOne, NothingIsInsertedFor) {
  const Options options{.batch = 7};
  expect_nothing_inserted(options);
  Options half = options;
  half.amp = AmpOptions{.dtype = f16, .level = AmpLevel::o2};
  half.scale_partial_loss = true;
  expect_nothing_inserted(half);
}

TEST(WorldOfOne, ExchangesWithItselfWhereAskedTo) {
  Options options{.batch = 7, .scale_partial_loss = true};
  options.force_collectives = options.shard_optimizer = true;
  const std::string step = step_after(pipeline(options), options);
  for (const std::string op : {"reduce_scatter", "all_gather"}) {
    EXPECT_NE(step.find(op), std::string::npos) << step;
  }
}

}  // namespace
}  // namespace fluid::testing::world_of_one_test
