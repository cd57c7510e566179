// A step allocates nothing: malloc, new (which calls it) and mmap of this program are counted.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <fstream>

#include "frontend/optimizers.h"
#include "ops/operators.h"
#include "tests/support/small_programs.h"
#include "tests/support/training.h"

#if !defined(FLUID_SANITIZED) && defined(__GLIBC__)
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {
// Accessed by builtins, because std::atomic is slow at -O0 and all cases of test_executor call
// malloc.
bool counting = false;
std::atomic<int> allocations = 0;
std::atomic<size_t> largest = 0;
void count(size_t bytes) {
  if (!__atomic_load_n(&counting, __ATOMIC_RELAXED)) return;
  ++allocations;
  for (size_t seen = largest; bytes > seen && !largest.compare_exchange_weak(seen, bytes);) {
  }
}
}  // namespace

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t n, size_t size);
void* __libc_realloc(void* p, size_t size);

void* malloc(size_t size) {
  count(size);
  return __libc_malloc(size);
}
void* calloc(size_t n, size_t size) {
  count(n * size);
  return __libc_calloc(n, size);
}
void* realloc(void* p, size_t size) {
  count(size);
  return __libc_realloc(p, size);
}
void* mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  count(size);
  const long mapped = syscall(SYS_mmap, address, size, protection, flags, fd, offset);
  return reinterpret_cast<void*>(mapped);
}
}

namespace fluid::allocation_test {
namespace {

int allocations_during(const std::function<void()>& work) {
  allocations = 0;
  largest = 0;
  __atomic_store_n(&counting, true, __ATOMIC_SEQ_CST);
  work();
  __atomic_store_n(&counting, false, __ATOMIC_SEQ_CST);
  return allocations;
}

TEST(Allocation, IsCounted) {
  std::unique_ptr<int> kept;
  EXPECT_GE(allocations_during([&] { kept = std::make_unique<int>(1); }), 1);
}

TEST(Allocation, StepsAllocateNothing) {
  const Program net = linear_regression_program();
  Executor exe(net, cpu(), {.threads = 2});
  exe.prepare({.train = {5000}, .eval = {5000}});
  Batch same = linear_batch(5000), fresh = linear_batch(5000);
  fresh.id = 0;
  exe.run(same);
  exe.eval(fresh);
  double sum = 0;
  const int count = allocations_during([&] {
    for (int i = 0; i < 100; ++i) {
      sum += exe.run(i % 2 == 0 ? same : fresh)["loss"].item();
      sum += exe.eval(fresh)["loss"].item();
    }
  });
  EXPECT_EQ(count, 0);
  EXPECT_GT(sum, 0);
}

TEST(Allocation, StepsOfSeveralLengthsAllocateNothing) {
  Program net("scaled");
  const Value x = net.data("x", {kBatch, kLength}, f32);
  const Value loss = mean(square(x * net.parameter("w", {1}, Init::constant(1))));
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 0.01});
  Executor exe(net, cpu(), {.threads = 1});
  exe.prepare({.train = {3}, .lengths = {4, 5}});
  const Batch four{3, {{"x", Tensor(f32, {3, 4})}}, 0}, five{3, {{"x", Tensor(f32, {3, 5})}}, 0};
  exe.run(four);
  exe.run(five);
  EXPECT_EQ(allocations_during([&] {
              for (int i = 0; i < 20; ++i) exe.run(i % 2 == 0 ? four : five);
            }),
            0);
}

TEST(Allocation, RecordedStepsAllocateNothing) {
  const Program net = linear_regression_program();
  Executor exe(net, cpu(), {.batch = 500, .profile = ProfileOptions{.warm_up = 1, .steps = 50}});
  const Batch batch = linear_batch(500);
  exe.run(batch);
  EXPECT_EQ(allocations_during([&] {
              for (int i = 0; i < 60; ++i) exe.run(batch);
            }),
            0);
  EXPECT_EQ(exe.profile().steps.at(0).times.size(), 50U);
}

/// Steps that might be run again to find what overflows, and are not.
TEST(Allocation, CheckedStepsAllocateNothing) {
  const Program net = linear_regression_program();
  Executor exe(net, cpu(),
               {.batch = 500,
                .precision = {.amp = AmpOptions{.dtype = f16}},
                .debug = {.check_finite = true}});
  const Batch batch = linear_batch(500);
  exe.run(batch);
  EXPECT_EQ(allocations_during([&] {
              for (int i = 0; i < 60; ++i) exe.run(batch);
            }),
            0);
}

Program trained_by(Program net) {
  minimize(net.ir().main().outputs[0].value, Adam{.lr = 0.001});
  return net;
}

/// Steps of a network on ever new batches, after the first of each slot.
class NetworkSteps {
 public:
  NetworkSteps(const Program& net, bool libraries, int threads = 2, int64_t slices = 1)
      : exe_(net, cpu(),
             {.batch = 8,
              .threads = threads,
              .micro_batches = slices,
              .debug = {.libraries = libraries}}) {
    run(4);
  }
  void run(int steps) {
    for (int i = 0; i < steps; ++i) loss_ = exe_.run(batch_)["loss"].item();
  }
  double loss() const { return loss_; }

 private:
  Batch batch_ = digit_batch(8);
  Executor exe_;
  double loss_ = 0;
};

std::vector<Program> networks() {
  std::vector<Program> nets;
  nets.push_back(trained_by(mnist_fluid_program()));
  nets.push_back(trained_by(mnist_cnn_program()));
  nets.emplace_back(testing::conv_net({.size = 28}));  // with dropout
  return nets;
}

TEST(Allocation, StepsOfGeneratedKernelsAllocateNothing) {
  for (const Program& net : networks()) {
    NetworkSteps steps(net, false);
    EXPECT_EQ(allocations_during([&] { steps.run(100); }), 0) << net.ir().name;
    EXPECT_GT(steps.loss(), 0);
  }
}

TEST(Allocation, StepsInMicroBatchesAllocateNothing) {
  NetworkSteps steps(trained_by(mnist_fluid_program()), false, 2, 3);
  EXPECT_EQ(allocations_during([&] { steps.run(100); }), 0);
  EXPECT_GT(steps.loss(), 0);
}

TEST(Allocation, StepsOfLibraryKernelsAllocateLessThanAPage) {
  for (const Program& net : networks()) {
    NetworkSteps steps(net, true);
    allocations_during([&] { steps.run(100); });
    EXPECT_LT(largest, size_t{4096}) << net.ir().name;
  }
}

int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t virtual_pages = 0, resident_pages = 0;
  statm >> virtual_pages >> resident_pages;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

TEST(Allocation, AThousandStepsLeaveTheResidentMemoryAsItIs) {
  NetworkSteps steps(trained_by(mnist_cnn_program()), true, 1);
  steps.run(100);
  const int64_t before = resident_bytes();
  steps.run(1000);
  EXPECT_LT(resident_bytes() - before, 1 << 20);
}

}  // namespace
}  // namespace fluid::allocation_test

#endif
