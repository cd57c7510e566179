#include <gtest/gtest.h>

#include "codegen/compiler.h"
#include "tests/support/kir_builder.h"
#include "tests/support/kir_check.h"

namespace fluid::testing {
namespace {

using Kind = kir::For::Kind;

constexpr DType kAll[] = {f64, f32, f16, bf16, i64, i32, u8, boolean};
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

TEST(Emission, Adds) {
  for (DType dtype : {f64, f32, f16, bf16, i64, i32, u8}) {
    expect_as_interpreted(map(Kind::vector, dtype, dtype, 61, [](Expr a, Expr b) { return a + b; }),
                          {sample(dtype, 61, 1), sample(dtype, 61, 2), Tensor(dtype, {61})});
  }
}

}  // namespace
}  // namespace fluid::testing
