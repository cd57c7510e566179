#include "executor/comm/communicator.h"

#include <gtest/gtest.h>

#include "ir/error.h"
#include "tests/support/errors.h"
#include "tests/support/processes.h"

namespace fluid::communicator_test {
namespace {

TEST(Communicator, AWorldOfOneNeedsNobody) {
  auto alone = make_communicator({}, std::chrono::milliseconds(1));
  float x = 3;
  alone->all_reduce(&x, 1, f32);
  alone->broadcast(&x, sizeof x, 0);
  alone->barrier(std::chrono::milliseconds(1));
  check_equal(*alone, {}, "program", 5);
  EXPECT_EQ(x, 3);
  EXPECT_EQ(alone->begin_collective(), 0);
  EXPECT_TRUE(states(error_of<DeviceError>([&] {
                       alone->throw_failure("the GPUs' step", alone->begin_collective(), "");
                     }),
                     "cannot complete the GPUs' step 1: it does not finish"));
}

TEST(Communicator, OthersMustBeThereAndGlooInTheBuild) {
  World world = testing::loopback_world(2);
  world.rank = 1;
  std::string error;
  try {
    make_communicator(world, std::chrono::milliseconds(100));
  } catch (const UserError& e) {
    error = e.what();
    EXPECT_TRUE(
        states(error, "this build has no Gloo (FLUID_GLOO=OFF): it runs one process, not 2"));
  } catch (const DeviceError& e) {
    error = e.what();
    EXPECT_EQ(error.find("rank 0 does not answer at 127.0.0.1"), 0u) << error;
  }
  EXPECT_NE(error, "");
}

}  // namespace
}  // namespace fluid::communicator_test
