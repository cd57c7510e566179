// Tests the guarantees of the GPU schedules, in PTX and by interpreting the threads.

#include "codegen/gpu.h"

#include <gtest/gtest.h>

#include "ir/tensor.h"
#include "ops/functions.h"
#include "ops/group.h"
#include "ops/operators.h"
#include "passes/pass.h"
#include "passes/pass_table.h"
#include "tests/support/count_of.h"
#include "tests/support/gpu_emulator.h"
#include "tests/support/interpreter.h"
#include "tests/support/kir_builder.h"
#include "tests/support/plain_target.h"

namespace fluid::testing::gpu_test {
namespace {

using Kind = kir::For::Kind;

Value source(ir::Graph& g, const std::string& name, Shape shape, DType dtype = f32) {
  return record_source(g, "data", name, {dtype, std::move(shape), {}}, {}, {});
}

/// The only fused group of a program that has `build`'s outputs, compiled.
GpuProgram compile(const std::function<Values(ir::Graph&)>& build) {
  ir::Program program("p");
  ir::Graph& g = program.main();
  for (const Value& v : build(g)) g.outputs.push_back({std::to_string(g.outputs.size()), v});
  expand_all(g);
  dce_pass().run(program, {}, PlainTarget());
  fuse_pass().run(program, {}, PlainTarget());
  outline_pass().run(program, {}, PlainTarget());
  for (const auto& op : g.ops) {
    if (op->name != "fused") continue;
    const ir::Graph* body = program.find(op->attrs.get<GraphRef>("body").name);
    return compile_ptx(schedule_gpu(*body, "k"), "sm_90");
  }
  throw InternalError("nothing to compile");
}

bool has(const GpuProgram& program, const std::string& text) {
  return program.ptx.find(text) != std::string::npos;
}

TEST(Gpu, NeighboursAreReadAndWritten16BytesAtATime) {
  for (const DType dtype : {f32, f16, bf16}) {
    const GpuProgram p = compile([&](ir::Graph& g) {
      const Value x = source(g, "x", {kBatch, 20, 24, 24}, dtype);
      return Values{relu(x + source(g, "b", {24, 24}, dtype))};
    });
    EXPECT_TRUE(has(p, "ld.global.v4.b32") && has(p, "st.global.v4.b32")) << p.ptx;
    EXPECT_FALSE(has(p, ".local")) << p.ptx;
  }
  EXPECT_TRUE(has(compile([](ir::Graph& g) {
                    return Values{relu(source(g, "x", {kBatch, 100}, f64))};
                  }),
                  "ld.global.v2.b64"));
}

TEST(Gpu, WhatDoesNotLieAtMultiplesIsReadOneByOne) {
  const GpuProgram p = compile([](ir::Graph& g) {
    return Values{sum(source(g, "x", {kBatch, 33}), {.axes = 1})};
  });
  EXPECT_FALSE(has(p, "ld.global.v")) << p.ptx;
}

TEST(Gpu, AWarpARowNeedsNoSharedMemory) {
  const GpuProgram p = compile([](ir::Graph& g) {
    return Values{softmax(source(g, "x", {kBatch, 128}))};
  });
  EXPECT_TRUE(has(p, "shfl.sync.bfly.b32"));
  EXPECT_FALSE(has(p, ".shared") || has(p, "bar.sync")) << p.ptx;
  EXPECT_EQ(p.launches.size(), 1U);
  EXPECT_EQ(p.launches[0].threads, 128);  // four rows
  EXPECT_EQ(p.launches[0].grid_size(10, 132), 3);
  EXPECT_EQ(p.launches[0].shared_bytes, 0);
}

/// A grid is at most twice as large as what a GPU runs at a time, and its thread groups run equally
/// many blocks.
TEST(Gpu, LargeGridsAreLimited) {
  const GpuLaunch launch{
      .entry = "k", .threads = 128, .blocks = extent_expr(kBatch), .thread_group_size = 32};
  EXPECT_EQ(launch.grid_size(0, 1), 0);
  EXPECT_EQ(launch.grid_size(128, 1), 32);
  EXPECT_EQ(launch.grid_size(129, 1), 17);  // 33 CUDA blocks: two each
  EXPECT_EQ(launch.grid_size(1000, 1), 32);
  EXPECT_EQ(launch.grid_size(1000, 100), 250);
}

TEST(Gpu, LongRowsAreSharedByAGroup) {
  const GpuProgram p = compile([](ir::Graph& g) {
    return Values{softmax(source(g, "x", {kBatch, 4000}))};
  });
  EXPECT_TRUE(has(p, "shfl.sync.bfly.b32") && has(p, ".shared") && has(p, "bar.sync")) << p.ptx;
  EXPECT_EQ(p.launches[0].grid_size(10, 132), 10);
  EXPECT_GT(p.launches[0].shared_bytes, 0);
}

TEST(Gpu, SumsOverEverythingTakeTwoPassesWithoutAtomics) {
  const GpuProgram p = compile([](ir::Graph& g) {
    return Values{sum(source(g, "x", {kBatch, 1000}))};
  });
  ASSERT_EQ(p.launches.size(), 2U);
  EXPECT_EQ(p.launches[0].entry, "k");
  EXPECT_EQ(p.launches[0].grid_size(1000, 132), 489);  // blocks of two times 1024 elements
  EXPECT_EQ(p.launches[1].grid_size(1000, 132), 1);
  EXPECT_FALSE(has(p, "atom") || has(p, "red.global")) << p.ptx;
}

TEST(Gpu, LoadsFeedSeveralProducts) {
  const GpuProgram p = compile([](ir::Graph& g) {
    return Values{matmul(source(g, "a", {2048, 512}), source(g, "b", {512, 1024}))};
  });
  EXPECT_EQ(p.launches.size(), 1U);
  EXPECT_GE(count_of(p.ptx, "fma.rn.f32"), 4 * count_of(p.ptx, "ld.global")) << p.ptx;
  EXPECT_TRUE(has(p, "ld.global.nc.v4.b32")) << p.ptx;
}

TEST(Gpu, FewResultsOfManyTermsTakeTwoPasses) {
  const GpuProgram p = compile([](ir::Graph& g) {
    return Values{
        matmul(source(g, "x", {50'000, 20}), source(g, "dy", {50'000, 10}), {.transpose_a = true})};
  });
  ASSERT_EQ(p.launches.size(), 2U);
  EXPECT_GE(p.launches[0].grid_size(1, 132) * p.launches[0].threads, 16 * 1024);
  EXPECT_FALSE(has(p, "atom")) << p.ptx;
}

TEST(Gpu, BatchesThatIndicesDoNotCountAreKnown) {
  const GpuProgram p = compile([](ir::Graph& g) {
    return Values{relu(source(g, "x", {kBatch, 1000}))};
  });
  EXPECT_GT(p.max_batch, 2'000'000);
  EXPECT_LT(p.max_batch * 1000, int64_t{1} << 31);
}

/// Constant masks let single lanes write, at addresses that are not aligned to the vector.
TEST(Gpu, LanesThatAreMaskedOneByOneAreWrittenWhereTheyLie) {
  const Expr i = Expr::var(0);
  const auto store_lane = [&](int64_t lane) {
    return store(1, i, load(0, f32, i), Expr::make(ScalarOp::eq, boolean, {i, Expr::index(lane)}));
  };
  kir::Kernel k = one_block(
      {input("x", f32, 4), output("y", f32, 4)},
      {loop(Kind::vector, 0, Expr::index(0), Expr::index(4), {store_lane(1), store_lane(2)})});
  k.vector_width = 4;
  k.buffers[0].noalias = true;
  Tensor x(f32, {4}), y(f32, {4});
  for (int64_t n = 0; n < 4; ++n) x.as<float>()[n] = static_cast<float>(n + 1);
  for (const std::string architecture : {"sm_90", "sm_100"}) {
    GpuEmulator(architecture).run({&k, 1}, std::vector<void*>{x.data(), y.data()}, 1);
    for (int64_t n = 0; n < 4; ++n) EXPECT_EQ(y.at(n), n % 3 == 0 ? 0 : n + 1) << architecture;
  }
}

/// y[i] = x[n - 1 - i] by way of memory: what a thread reads another one wrote.
kir::Kernel reversal(int64_t n, int64_t thread_group_size, int64_t width) {
  const Expr i = Expr::var(0), j = Expr::var(1);
  kir::Kernel k = one_block(
      {input("x", f32, n), output("y", f32, n)},
      {loop(Kind::vector, 0, Expr::index(0), Expr::index(n), {store(2, i, load(0, f32, i))}),
       loop(Kind::vector, 1, Expr::index(0), Expr::index(n),
            {store(1, j, load(2, f32, Expr::index(n - 1) - j))})});
  k.buffers.push_back({"between", f32, n, kir::Buffer::Role::scratch});
  k.thread_group_size = thread_group_size;
  k.vector_width = width;
  return k;
}

TEST(Gpu, ThreadsWaitForWhatOthersWrite) {
  for (const auto& [thread_group_size, width] : {std::pair(32, 1), {8, 2}, {128, 1}, {64, 4}}) {
    for (const bool backwards : {false, true}) {
      constexpr int64_t kElements = 203;
      const kir::Kernel kernel = reversal(kElements, thread_group_size, width);
      Tensor x(f32, {kElements}), y(f32, {kElements}), between(f32, {kElements});
      for (int64_t i = 0; i < kElements; ++i) x.as<float>()[static_cast<size_t>(i)] = float(i);
      const std::vector<void*> buffers = {x.data(), y.data(), between.data()};
      GpuEmulator().run({&kernel, 1}, buffers, 1, 1, backwards);
      for (int64_t i = 0; i < kElements; ++i) ASSERT_EQ(y.at(i), x.at(kElements - 1 - i));
      const std::string ptx = compile_ptx({&kernel, 1}, "sm_80").ptx;
      EXPECT_NE(ptx.find(thread_group_size > 32 ? "bar.sync" : "bar.warp.sync"), std::string::npos)
          << ptx;
    }
  }
}

/// A vector load of the last elements also reads memory beyond the end of x, with arbitrary
/// contents.
TEST(Gpu, WhatIsBehindTheEndOfATailDoesNotCount) {
  for (const int64_t elements : {1, 2, 3, 5, 50, 63}) {
    Tensor x(f32, {elements}), y(f32, {1});
    std::ranges::fill(x.as<float>(), 1.0F);
    kir::Kernel kernel =
        one_block({input("x", f32, elements), output("sum", f32, 1)},
                  {{kir::Accumulator{0, f32, Combine::sum, {}, true}},
                   loop(Kind::vector, 0, Expr::index(0), Expr::index(elements),
                        {{kir::Accumulate{0, {}, load(0, f32, Expr::var(0)), {}}}}),
                   store(1, Expr::index(0), lanes(named(ScalarOp::acc, f32, 0)))});
    kernel.buffers[0].noalias = true;
    kernel.thread_group_size = 16;
    kernel.vector_width = 4;
    const std::vector<void*> buffers = {x.data(), y.data()};
    GpuEmulator().run({&kernel, 1}, buffers, 1);
    EXPECT_EQ(y.at(0), static_cast<double>(elements));
  }
}

/// The sum of x, where its largest element is, and a product of two factors, by a thread group.
TEST(Gpu, ThreadGroupsCombineInEverySize) {
  constexpr int64_t kElements = 1000;
  Tensor x(f32, {kElements});
  double sum = 0;
  for (int64_t i = 0; i < kElements; ++i) {
    x.as<float>()[static_cast<size_t>(i)] = float(i * 37 % 101);
    sum += x.at(i);
  }
  const Expr i = Expr::var(0), value = load(0, f32, i);
  const Expr best = named(ScalarOp::acc, i64, 1), total = named(ScalarOp::acc, f32, 0);
  const Expr product = named(ScalarOp::acc, f32, 2);
  const auto factor_at = [&](int64_t place, double factor) {
    return scalar::select(scalar::compare(ScalarOp::eq, i, Expr::index(place)),
                          Expr::constant(f32, factor), Expr::constant(f32, 1));
  };
  const Expr factor = factor_at(7, 3) * factor_at(993, 5);
  for (const int64_t thread_group_size : {2, 4, 8, 16, 32, 64, 128, 256, 512}) {
    for (const int64_t width : {1, 2, 4}) {
      kir::Kernel kernel = one_block({input("x", f32, kElements), output("sum", f32, 1),
                                      output("at", i64, 1), output("product", f32, 1)},
                                     {{kir::Accumulator{0, f32, Combine::sum, {}, true}},
                                      {kir::Accumulator{1, f32, Combine::argmax, {}, true}},
                                      {kir::Accumulator{2, f32, Combine::prod, {}, true}},
                                      loop(Kind::vector, 0, Expr::index(0), Expr::index(kElements),
                                           {{kir::Accumulate{0, {}, value, {}}},
                                            {kir::Accumulate{1, {}, value, i}},
                                            {kir::Accumulate{2, {}, factor, {}}}}),
                                      store(1, Expr::index(0), lanes(total)),
                                      store(2, Expr::index(0), lanes(best)),
                                      store(3, Expr::index(0), lanes(product))});
      kernel.thread_group_size = thread_group_size;
      kernel.vector_width = width;
      Tensor y(f32, {1}), at(i64, {1}), z(f32, {1});
      const std::vector<void*> buffers = {x.data(), y.data(), at.data(), z.data()};
      GpuEmulator().run({&kernel, 1}, buffers, 1);
      EXPECT_EQ(y.at(0), sum) << thread_group_size << " x " << width;
      EXPECT_EQ(z.at(0), 15) << thread_group_size << " x " << width;
      // 30 * 37 = 1110 = 10 * 101 + 100.
      EXPECT_EQ(at.at(0), 30) << thread_group_size << " x " << width;
    }
  }
}

}  // namespace
}  // namespace fluid::testing::gpu_test
