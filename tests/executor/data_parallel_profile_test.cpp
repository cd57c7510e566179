// Tests the profile of data-parallel steps.

#include <gtest/gtest.h>

#include "frontend/optimizers.h"
#include "tests/support/processes.h"
#include "tests/support/training.h"

namespace fluid::data_parallel_profile_test {
namespace {

/// Returns the times and bytes of a rank's collectives.
std::string profiled_rank(const World& world) {
  Program net = mnist_cnn_program();
  minimize(net.ir().main().outputs[0].value, Adam{.lr = 0.01});
  Executor exe(net, cpu(),
               {.batch = 4,
                .threads = 1,
                .distributed = {.world = world},
                .profile = ProfileOptions{.warm_up = 2}});
  Batch batch = digit_batch(4);
  batch.first = 4 * world.rank;
  batch.global_batch_size = 8;
  for (int i = 0; i < 3; ++i) exe.run(batch);
  const Profile profile = exe.profile();
  const ProfiledStep& step = profile.steps.at(0);
  double bytes = 0;
  for (size_t c = 0; c < step.runs[0].size(); ++c) {
    const CallInfo& call = step.runs[0][c];
    const CallTimes& times = step.times[0].runs[0].calls[c];
    const bool inside = step.times[0].step.begin < times.collective.begin &&
                        times.collective.end < step.times[0].step.end && times.collective.ns() > 0;
    if (call.is_collective != inside) return "an exchange without its time: " + call.ops;
    if (call.is_collective) bytes += call.bytes;
  }
  return std::to_string(profile.rank) + (bytes > 2e5 ? " has sent its gradients" : " sent little");
}

TEST(DataParallel, RanksTimeTheirCollectives) {
  testing::Ranks ranks(2, profiled_rank);
  EXPECT_EQ(ranks.result(0), "0 has sent its gradients");
  EXPECT_EQ(ranks.result(1), "1 has sent its gradients");
}

}  // namespace
}  // namespace fluid::data_parallel_profile_test
