// Want of memory on the host that stands in for a GPU: whatever takes some, it is said what lacks,
// how much is free, and what can be done.

#include <gtest/gtest.h>

#include "executor/device/out_of_memory.h"
#include "executor/gpu_driver/backend.h"
#include "executor/gpu_driver/gpu.h"
#include "tests/support/errors.h"
#include "tests/support/host_gpu_test.h"

namespace fluid::gpu_lack_test {
namespace {

using fluid::testing::fail_host_gpu;
using fluid::testing::host_gpu_table;

constexpr int64_t kBytes = 1 << 20;

class GpuLack : public testing::HostGpuTest {
 protected:
  static void without_memory_for(const std::string& function) {
    fail_host_gpu(function, fluid_gpu_out_of_memory);
  }
};

/// Another process uses all GPU memory.
TEST_F(GpuLack, OfTheContextSaysHowToGetOne) {
  const std::string advice =
      "its context needs memory: free GPU memory, or choose another GPU by CUDA_VISIBLE_DEVICES";
  without_memory_for("describe");
  const GpuBackend backend{.table = &host_gpu_table(), .devices = 1, .unavailable_reason = ""};
  EXPECT_TRUE(states(error_of<OutOfMemory>([&] { require_supported_gpu(backend, 0); }),
                     "cuda:0: describe was told to fail: " + advice));
  without_memory_for("open");
  EXPECT_TRUE(states(error_of<OutOfMemory>([] { Gpu(host_gpu_table(), 0); }),
                     "open was told to fail: " + advice));
}

TEST_F(GpuLack, OfAnOpenGpuSaysWhatIsFree) {
  const Gpu gpu(host_gpu_table(), 0);
  const std::string advice =
      ": 1.00 GiB of 1.00 GiB are free; take a smaller batch, micro-batches or mixed precision, or "
      "free GPU memory";
  without_memory_for("stream_create");
  EXPECT_TRUE(states(error_of<OutOfMemory>([&] { gpu.create_stream(); }),
                     "stream_create was told to fail" + advice));
  without_memory_for("event_create");
  EXPECT_TRUE(states(error_of<OutOfMemory>([&] { gpu.create_event(); }),
                     "event_create was told to fail" + advice));
  without_memory_for("module_load");
  EXPECT_TRUE(states(error_of<OutOfMemory>([&] { gpu.load_module(""); }),
                     "module_load was told to fail" + advice));
  without_memory_for("allocate");
  EXPECT_TRUE(states(error_of<OutOfMemory>([&] { gpu.allocate(kBytes); }),
                     "the GPU has no 1.00 MiB in one contiguous block" + advice));
  const GpuStream stream = gpu.create_stream();
  without_memory_for("graph_create");
  EXPECT_TRUE(states(error_of<OutOfMemory>([&] { gpu.capture(stream, [] {}); }),
                     "graph_create was told to fail" + advice));
}

/// Asking how much is free may fail as well; what lacks is said all the same.
TEST_F(GpuLack, IsSaidWhereNobodyKnowsWhatIsFree) {
  const Gpu gpu(host_gpu_table(), 0);
  without_memory_for("stream_create");
  without_memory_for("memory_info");
  EXPECT_TRUE(states(error_of<OutOfMemory>([&] { gpu.create_stream(); }),
                     "stream_create was told to fail: take a smaller batch, micro-batches or mixed "
                     "precision, or free GPU memory"));
}

TEST_F(GpuLack, OfTheHostsMemoryNamesTheHost) {
  const Gpu gpu(host_gpu_table(), 0);
  without_memory_for("allocate_host");
  EXPECT_TRUE(
      states(error_of<OutOfMemory>([&] { gpu.allocate_host(kBytes); }),
             "the host has no 1.00 MiB of pinned memory for a GPU: take a smaller batch, or free "
             "host memory"));
}

}  // namespace
}  // namespace fluid::gpu_lack_test
