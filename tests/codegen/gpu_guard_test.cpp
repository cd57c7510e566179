// Tests, in PTX, the guard with which a GPU skips the update of a rejected step.

#include "codegen/gpu_guard.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/gpu_emulator.h"
#include "tests/support/kir_builder.h"
#include "tests/support/ptx.h"

namespace fluid::testing::gpu_guard_test {
namespace {

/// Computes y = x + 1 with thread groups of `thread_group_size` threads and a barrier.
kir::Kernel increments(int64_t n, int64_t thread_group_size) {
  const Expr i = Expr::var(0), j = Expr::var(1);
  kir::Kernel k = one_block(
      {input("x", f32, n), output("y", f32, n), {"between", f32, n, kir::Buffer::Role::scratch}},
      {loop(kir::For::Kind::vector, 0, Expr::index(0), Expr::index(n),
            {store(2, i, load(0, f32, i) + Expr::constant(f32, 1))}),
       loop(kir::For::Kind::vector, 1, Expr::index(0), Expr::index(n),
            {store(1, Expr::index(n - 1) - j, load(2, f32, Expr::index(n - 1) - j))})});
  k.thread_group_size = thread_group_size;
  k.vector_width = 1;
  return k;
}

TEST(GpuGuard, WhatIsGuardedDoesNothingOnceDataWasRejected) {
  constexpr int64_t kElements = 70;
  for (const int64_t thread_group_size : {1, 32, 256}) {
    const kir::Kernel guarded = skip_if_rejected(increments(kElements, thread_group_size));
    for (const int64_t refused : {0, 1, 5}) {
      std::vector<float> x(kElements, 2), y(kElements, 9), between(kElements);
      int64_t word = refused;
      const std::vector<void*> buffers = {x.data(), y.data(), between.data(), &word};
      GpuEmulator().run({&guarded, 1}, buffers, 1);
      EXPECT_EQ(y, std::vector<float>(kElements, refused == 0 ? 3 : 9)) << thread_group_size;
    }
  }
}

TEST(GpuGuard, OneRejectionIsEnoughAndStays) {
  for (const int64_t count : {1, 2, 7}) {
    for (int64_t bad = -1; bad < count; ++bad) {
      std::vector<int64_t> errors(static_cast<size_t>(2 * count));
      for (int64_t i = 0; i < count; ++i) errors[static_cast<size_t>(2 * i + 1)] = 1000;
      if (bad >= 0) errors[static_cast<size_t>(2 * bad)] = 1;
      for (const int64_t before : {0, 3}) {
        int64_t word = before;
        const kir::Kernel pass = error_flag_kernel(count);
        const std::vector<void*> buffers = {errors.data(), &word};
        GpuEmulator().run({&pass, 1}, buffers, 1);
        EXPECT_EQ(word != 0, bad >= 0 || before != 0) << bad << " of " << count;
      }
    }
  }
}

TEST(GpuGuard, CopiesAllBytesAndNoOther) {
  for (const size_t bytes : {1, 2, 3, 4, 7, 12, 64, 4100, 8192, 20'001}) {
    std::vector<uint8_t> from(bytes), to(bytes);
    std::iota(from.begin(), from.end(), uint8_t{1});
    const kir::Kernel pass = copy_kernel(static_cast<int64_t>(bytes));
    const std::vector<void*> buffers = {from.data(), to.data()};
    GpuEmulator().run({&pass, 1}, buffers, 1);
    EXPECT_EQ(to, from) << bytes;
  }
}

TEST(GpuGuard, Assembles) {
  const std::string assembler = ptx_assembler();
  if (assembler.empty()) GTEST_SKIP() << "no ptxas in /usr/local/cuda/bin or on the PATH";
  expect_assembles(assembler,
                   {skip_if_rejected(increments(70, 32)), skip_if_rejected(increments(70, 256)),
                    error_flag_kernel(3), copy_kernel(20'001), copy_kernel(64)},
                   gpu_architectures());
}

}  // namespace
}  // namespace fluid::testing::gpu_guard_test
