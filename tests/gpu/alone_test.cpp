// Runs collectives on one GPU, in a world of one: tests the functions of the GPU and of NCCL that
// several processes need.

#include "frontend/fluid.h"
#include "tests/gpu/gpu_test.h"
#include "tests/support/errors.h"
#include "tests/support/training.h"

namespace fluid::alone_test {
namespace {

constexpr int kSteps = 5;

class GpuAlone : public GpuTest {
 protected:
  int64_t batch() const { return scaled(1000, 32); }

  std::vector<double> losses(ExecutorOptions options) const {
    options.batch = batch();
    options.precision.dtype = f64;
    Executor exe(linear_regression_program(), cuda(0), options);
    std::vector<double> all;
    for (int i = 0; i < kSteps; ++i) all.push_back(exe.run(linear_batch(batch()))["loss"].item());
    return all;
  }
};

TEST_F(GpuAlone, TrainsAsItDoesWithoutCollectives) {
  const std::vector<double> expected = losses({});
  const Buckets small{.first_bytes = 8, .bytes = 8};
  for (const ExecutorOptions& options :
       {ExecutorOptions{.distributed = {.force_collectives = true}},
        {.distributed = {.force_collectives = true, .zero = 1}},
        {.micro_batches = 2, .distributed = {.force_collectives = true}},
        {.distributed = {.force_collectives = true, .buckets = small}}}) {
    const std::vector<double> found = losses(options);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(found[i], expected[i], 1e-9 * expected[i]) << "step " << i;
    }
    EXPECT_EQ(losses(options), found) << "bit for bit";
  }
}

/// After a rejected step, the communicator is unusable and all objects are freed.
TEST_F(GpuAlone, LeavesAStepWhoseDataIsRefused) {
  Program net("labels");
  const Value x = net.data("x", {kBatch, 4}, f32);
  const Value label = net.data("label", {kBatch}, i64);
  const Value loss = mean(softmax_cross_entropy(linear(x, {.units = 3}), label));
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 0.1});
  for (int again = 0; again < 2; ++again) {
    Executor exe(net, cuda(0), {.batch = 2, .distributed = {.force_collectives = true}});
    Tensor some(f32, {2, 4}), labels(i64, {2});
    const Batch batch{.size = 2, .columns = {{"x", some}, {"label", labels}}};
    exe.run(batch);
    labels.as<int64_t>()[1] = 3;
    expect_user_error([&] { exe.run(batch).wait(); }, "the step was not applied");
    EXPECT_TRUE(states(error_of<DeviceError>([&] { exe.run(batch); }),
                       "this process left a step that all ranks take: start all again"));
  }
}

}  // namespace
}  // namespace fluid::alone_test
