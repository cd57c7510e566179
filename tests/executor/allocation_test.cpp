// A step allocates nothing: malloc, new (which calls it) and mmap of this program are counted.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>

#include "tests/support/training.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__)
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {
std::atomic<bool> counting = false;
std::atomic<int> allocations = 0;
void count() {
  if (counting) ++allocations;
}
}  // namespace

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t n, size_t size);
void* __libc_realloc(void* p, size_t size);

void* malloc(size_t size) {
  count();
  return __libc_malloc(size);
}
void* calloc(size_t n, size_t size) {
  count();
  return __libc_calloc(n, size);
}
void* realloc(void* p, size_t size) {
  count();
  return __libc_realloc(p, size);
}
void* mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  count();
  const long mapped = syscall(SYS_mmap, address, size, protection, flags, fd, offset);
  return reinterpret_cast<void*>(mapped);
}
}

namespace fluid {
namespace {

int allocations_during(const std::function<void()>& work) {
  allocations = 0;
  counting = true;
  work();
  counting = false;
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

}  // namespace
}  // namespace fluid

#endif
