#include <gtest/gtest.h>

#include "codegen/compiler.h"
#include "ir/error.h"
#include "tests/support/full_run.h"
#include "tests/support/kir_builder.h"
#include "tests/support/kir_check.h"
#include "tests/support/kir_samples.h"

namespace fluid::testing::emission_test {
namespace {

using Kind = kir::For::Kind;

constexpr DType kAll[] = {f64, f32, f16, bf16, i64, i32, u8, i8, boolean};
constexpr int64_t kSizes[] = {0, 1, 5, 16, 31, 32, 61, 127};

/// out[i] = f(a[i], b[i]) in a loop of the given kind.
kir::Kernel map(Kind kind, DType in, DType out, int64_t n,
                const std::function<Expr(Expr, Expr)>& f) {
  const Expr i = Expr::var(0);
  return one_block({input("a", in, n), input("b", in, n), output("y", out, n)},
                   {loop(kind, 0, Expr::index(0), Expr::index(n),
                         {store(2, i, f(load(0, in, i), load(1, in, i)))})});
}

TEST(Emission, CopiesEveryDtypeAtEverySize) {
  for (DType dtype : kAll) {
    for (int64_t n : kSizes) {
      for (Kind kind : {Kind::serial, Kind::vector}) {
        expect_as_interpreted(map(kind, dtype, dtype, n, [](Expr a, Expr) { return a; }),
                              {sample(dtype, n), sample(dtype, n), Tensor(dtype, {n})});
      }
    }
  }
}

/// Tensors for the kernel's buffers: samples for operands, zeros for the rest.
std::vector<Tensor> memory_for(const kir::Kernel& kernel, int64_t batch) {
  std::vector<Tensor> tensors;
  for (const kir::Buffer& b : kernel.buffers) {
    const int64_t n = b.elements.at(batch);
    const bool operand = b.role == kir::Buffer::Role::in;
    tensors.push_back(operand ? sample(b.dtype, n, tensors.size() + 1) : Tensor(b.dtype, {n}));
  }
  return tensors;
}

/// Reverses 37 elements in memory of the kernel, in lanes.
TEST(Emission, LocalBuffersAreNotArguments) {
  constexpr int64_t kCount = 37;
  const Expr i = Expr::var(0), n = Expr::index(kCount);
  for (DType dtype : kAll) {
    const kir::Kernel kernel =
        one_block({input("x", dtype, kCount),
                   output("y", dtype, kCount),
                   {"local", dtype, kCount, kir::Buffer::Role::local}},
                  {loop(Kind::vector, 0, Expr::index(0), n, {store(2, i, load(0, dtype, i))}),
                   loop(Kind::vector, 0, Expr::index(0), n,
                        {store(1, i, load(2, dtype, Expr::index(kCount - 1) - i))})});
    EXPECT_EQ(kir::argument_count(kernel), 2);
    expect_as_interpreted(kernel, memory_for(kernel, 1));
  }
}

TEST(Emission, EveryScalarAndStatement) {
  for (const kir::Kernel& kernel : every_scalar_kernels()) {
    for (int64_t batch : {0, 1, 3}) {
      expect_as_interpreted(kernel, memory_for(kernel, batch), batch, 5);
      if (kernel.blocks.op() == ScalarOp::constant) break;
    }
  }
}

TEST(Emission, ReducesEveryDtypeAtEverySize) {
  for (DType dtype : {f64, f32, f16, bf16, i64, i32, u8, i8}) {
    for (int64_t n : kSizes) {
      for (const kir::Kernel& kernel : reduction_kernels(dtype, n)) {
        expect_as_interpreted(kernel, memory_for(kernel, 1));
      }
    }
  }
}

TEST(Emission, SumsLaneByLaneThenInAFixedTree) {
  for (DType dtype : {f64, f32}) {
    for (int64_t n : kSizes) {
      Tensor x(dtype, {n});
      for (int64_t i = 0; i < n; ++i) {
        const double v = 1 / (static_cast<double>(i) + 3);
        dtype == f64 ? x.as<double>()[static_cast<size_t>(i)] = v
                     : x.as<float>()[static_cast<size_t>(i)] = static_cast<float>(v);
      }
      const Expr sum = named(ScalarOp::acc, dtype, 1);
      const kir::Kernel kernel =
          one_block({input("x", dtype, n), output("y", dtype, 1)},
                    {kir::Stmt{kir::Accumulator{1, dtype, Combine::sum, {}, true}},
                     loop(Kind::vector, 0, Expr::index(0), Expr::index(n),
                          {kir::Stmt{kir::Accumulate{1, {}, load(0, dtype, Expr::var(0)), {}}}}),
                     store(1, Expr::index(0), lanes(sum))});
      expect_as_interpreted(kernel, {x, Tensor(dtype, {1})});  // to the last bit
    }
  }
}

TEST(Emission, LoadsAndStoresAtEveryStride) {
  for (DType dtype : kAll) {
    const bool all = dtype == f32 || testing::is_full_run();
    for (int64_t stride :
         all ? std::vector<int64_t>{-3, -1, 0, 1, 2, 3, 4, 7} : std::vector<int64_t>{-1, 1, 3}) {
      // No element, one, less than a vector, whole vectors, vectors and a rest.
      const std::vector<int64_t> sizes =
          dtype == f32 ? std::vector<int64_t>{0, 1, 7, 32, 53} : std::vector<int64_t>{1, 53};
      for (const int64_t n : sizes) {
        for (const kir::Kernel& kernel : memory_kernels(dtype, stride, n)) {
          std::vector<Tensor> memory = memory_for(kernel, 1);
          for (int64_t i = 0; i < n; ++i) {
            memory[2].as<int64_t>()[static_cast<size_t>(i)] = (i * 5 + 2) % n;
          }
          expect_as_interpreted(kernel, memory);
        }
      }
    }
  }
}

/// Vector loops of one iteration, whose length only the optimizer finds out.
TEST(Emission, StoresOneLaneOfAVectorLoop) {
  constexpr int64_t kStored = 5, kElements = 16;
  for (DType dtype : kAll) {
    const Expr i = Expr::var(0), v = Expr::var(1);
    const Expr end = scalar::min(i + Expr::index(1), Expr::index(kStored));
    const kir::Kernel kernel =
        one_block({input("x", dtype, kElements), output("y", dtype, kElements)},
                  {loop(Kind::vector, 2, Expr::index(0), Expr::index(kElements),
                        {store(1, Expr::var(2), load(0, dtype, Expr::var(2)))}),
                   loop(Kind::serial, 0, Expr::index(0), Expr::index(kStored),
                        {loop(Kind::vector, 1, i, end,
                              {store(1, v, load(0, dtype, Expr::index(kElements - 1) - v))})})});
    expect_as_interpreted(kernel, memory_for(kernel, 1));
  }
}

/// Like the test above, with a loop length that depends on the block index, and with rounding of
/// f32.
TEST(Emission, StoresOneLaneOfAVectorLoopInEachBlock) {
  constexpr int64_t kRows = 3, kElements = 16;
  for (DType dtype : {f32, f16, bf16}) {
    const Expr rows = Expr::index(kRows), v = Expr::var(1);
    const Expr first = named(ScalarOp::let, DType::i64, 1),
               last = named(ScalarOp::let, DType::i64, 2);
    kir::Kernel kernel =
        one_block({input("x", f32, kElements), output("y", dtype, kElements)},
                  {kir::Stmt{kir::Let{1, scalar::min(scalar::mod(Expr::var(1000), rows), rows)}},
                   kir::Stmt{kir::Let{2, scalar::min(first + Expr::index(1), rows)}},
                   loop(Kind::vector, 1, first, last, {store(1, v, load(0, f32, v))})});
    kernel.blocks = rows;
    expect_as_interpreted(kernel, memory_for(kernel, 1));
  }
}

TEST(Emission, LoadsThatSeveralLanesShare) {
  for (DType dtype : {f64, bf16, u8}) {
    for (int64_t divisor : {2, 3, 5}) {
      for (int64_t n : {2, 15, 30, 150}) {
        for (const kir::Kernel& kernel : divided_kernels(dtype, divisor, n % 4, n)) {
          expect_as_interpreted(kernel, memory_for(kernel, 1));
        }
      }
    }
  }
}

/// Whether code for the x86-64 level `cpu` runs here.
bool runs_here(const std::string& cpu) {
#if defined(__x86_64__)
  return cpu != "x86-64-v3" || (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
#else
  return cpu.empty();
#endif
}

/// Loads of which a few lanes are enabled, in some iterations of a loop. A CPU with narrower
/// vectors than the loop has parts of a vector without an enabled lane.
TEST(Emission, LoadsAndStoresPartsOfAVector) {
  constexpr int64_t kRows = 2, kColumns = 16;
  const Expr i = Expr::var(0), v = Expr::var(1);
  const Expr at = i * Expr::index(kColumns) + v;
  for (const std::string cpu : {"", "x86-64-v3", "x86-64-v2"}) {
    if (!runs_here(cpu)) continue;
    for (const auto& [begin, end] : {std::pair(0, 3), {5, 7}, {9, 14}, {2, 12}}) {
      const Expr some = scalar::logical_and(
          scalar::compare(ScalarOp::lt, i, batch()),
          scalar::logical_and(scalar::compare(ScalarOp::ge, v, Expr::index(begin)),
                              scalar::compare(ScalarOp::lt, v, Expr::index(end))));
      for (DType dtype : kAll) {
        constexpr int64_t n = kRows * kColumns;
        const kir::Kernel kernel =
            one_block({input("a", dtype, n), input("b", dtype, n), output("y", dtype, n),
                       output("z", dtype, n), output("some", dtype, n)},
                      {loop(Kind::serial, 0, Expr::index(0), Expr::index(kRows),
                            {loop(Kind::vector, 1, Expr::index(0), Expr::index(kColumns),
                                  {store(2, at, load(0, dtype, at, some)),
                                   store(3, at, load(1, dtype, at, some)),
                                   store(4, at, load(0, dtype, at), some)})})});
        expect_as_interpreted(kernel, memory_for(kernel, 1), 1, 0, cpu);
      }
    }
  }
}

/// Pads rows of 5 elements to 12, as two vectors of 8 lanes: no lane of the second one reads.
TEST(Emission, PadsTheTailOfAVectorLoop) {
  constexpr int64_t kRows = 2, kRead = 5, kColumns = 12, kBefore = 3;
  const Expr i = Expr::var(0), v = Expr::var(1), from = v - Expr::index(kBefore);
  const Expr inside = scalar::logical_and(
      scalar::compare(ScalarOp::lt, i, batch()),
      scalar::logical_and(scalar::compare(ScalarOp::ge, from, Expr::index(0)),
                          scalar::compare(ScalarOp::lt, from, Expr::index(kRead))));
  for (const std::string cpu : {"", "x86-64-v3", "x86-64-v2"}) {
    if (!runs_here(cpu)) continue;
    for (DType dtype : kAll) {
      const kir::Kernel kernel = one_block(
          {input("x", dtype, kRows * kRead), output("y", dtype, kRows * kColumns)},
          {loop(Kind::serial, 0, Expr::index(0), Expr::index(kRows),
                {loop(Kind::vector, 1, Expr::index(0), Expr::index(kColumns),
                      {store(1, i * Expr::index(kColumns) + v,
                             load(0, dtype, i * Expr::index(kRead) + from, inside, 1))})})});
      expect_as_interpreted(kernel, memory_for(kernel, 1), 1, 0, cpu);
    }
  }
}

TEST(Emission, RejectsWhatIsNotKernelIr) {
  const Expr i = Expr::var(0);
  auto expect_error = [](kir::Block body) {
    const kir::Kernel kernel = one_block({output("y", f32, 64)}, std::move(body));
    EXPECT_THROW(Compiler({}).compile(kernel), InternalError);
  };
  auto vector = [](kir::Block body, int64_t var = 0) {
    return loop(Kind::vector, var, Expr::index(0), Expr::index(64), std::move(body));
  };
  expect_error({store(0, i, Expr::constant(f32, 1))});                         // no such variable
  expect_error({store(1, Expr::index(0), Expr::constant(f32, 1))});            // no such buffer
  expect_error({vector({vector({store(0, i, Expr::constant(f32, 1))}, 1)})});  // nested
  expect_error({store(0, Expr::index(0), named(ScalarOp::let, f32, 5))});      // no such name
  expect_error({kir::Stmt{kir::Accumulator{1, f32, Combine::sum, {}, false}},  // not of lanes
                vector({kir::Stmt{kir::Accumulate{1, {}, Expr::constant(f32, 1), {}}}})});
  expect_error({kir::Stmt{kir::Accumulator{1, f64, Combine::sum, {}, false}},  // another dtype
                kir::Stmt{kir::Accumulate{1, {}, Expr::constant(f32, 1), {}}}});
}

}  // namespace
}  // namespace fluid::testing::emission_test
