#include "ops/expr.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fluid::expr_test {
namespace {

const Expr kI = Expr::var(0);
const Expr kJ = Expr::var(1);

TEST(Expr, FoldsIndexArithmetic) {
  EXPECT_EQ((kI + 0).str(), "i0");
  EXPECT_EQ((kI * 1).str(), "i0");
  EXPECT_EQ((kI * 0).str(), "0");
  EXPECT_EQ((kI + 2 + 3).str(), "i0 + 5");
  EXPECT_EQ((kI - 2 + kJ + 3).str(), "i0 + i1 + 1");
  EXPECT_EQ((Expr::index(3) * (kI + 2)).str(), "i0 * 3 + 6");
  EXPECT_EQ((kI - kI).str(), "0");
}

TEST(Expr, FoldsDivisionOfMultiples) {
  const Expr n = Expr::index(4);
  EXPECT_EQ(scalar::floordiv(kI * 4 + 3, n).str(), "i0");
  EXPECT_EQ(scalar::mod(kI * 4 + 3, n).str(), "3");
  EXPECT_EQ(scalar::floordiv(kI * 8 + kJ, n).str(), "i0 * 2 + floordiv(i1, 4)");
  EXPECT_EQ(scalar::mod(kI * 8 + kJ, n).str(), "mod(i1, 4)");
  EXPECT_EQ(scalar::floordiv(Expr::index(-1), n).str(), "-1");
  EXPECT_EQ(scalar::mod(Expr::index(-1), n).str(), "3");
  EXPECT_EQ(scalar::floordiv(kI, Expr::index(1)).str(), "i0");
}

int64_t at(const Expr& e, int64_t j) {
  const Expr value =
      rewrite(e, [&](const Expr& n) { return n.op() == ScalarOp::var ? Expr::index(j) : Expr(); });
  return value.node().ivalue;
}

/// Compares the folded quotient and remainder of c - (j * a + b) by n with their values at j.
void expect_exact_division(int64_t c, int64_t a, int64_t b, int64_t n) {
  const Expr dividend = Expr::index(c) - (kJ * Expr::index(a) + Expr::index(b));
  const Expr quotient = scalar::floordiv(dividend, Expr::index(n));
  const Expr rest = scalar::mod(dividend, Expr::index(n));
  for (int64_t j = -3; j <= 3; ++j) {
    const int64_t value = c - (j * a + b), below = (value % n + n) % n;
    EXPECT_EQ(at(rest, j), below) << rest.str() << ", " << c << " " << a << " " << b << " " << n;
    EXPECT_EQ(at(quotient, j), (value - below) / n) << quotient.str();
  }
}

TEST(Expr, DividesDifferencesExactly) {
  for (int64_t c = -5; c <= 5; ++c) {
    for (int64_t a = -4; a <= 4; ++a) {
      for (int64_t b = -5; b <= 5; ++b) {
        for (int64_t n = 1; n <= 4; ++n) expect_exact_division(c, a, b, n);
      }
    }
  }
}

TEST(Expr, FoldsScalars) {
  const Expr x = scalar::cast(kI, f32);
  EXPECT_EQ((x * 1.0 - 0.0).str(), "f32(i0)");
  EXPECT_EQ((x + -0.0).str(), "f32(i0)");
  EXPECT_EQ((x + 0.0).str(), "f32(i0) + 0.0");  // x may be -0, which becomes 0
  EXPECT_EQ((x - -0.0).str(), "f32(i0) - -0.0");
  EXPECT_EQ((x * 0.0).str(), "f32(i0) * 0.0");  // not for floats: x may be nan
  EXPECT_EQ((Expr::constant(f32, 0.1) * 3.0).node().fvalue, 0.1f * 3.0f);
  EXPECT_EQ(scalar::pow(x, Expr::constant(f32, 2)).str(), "f32(i0) * f32(i0)");
  EXPECT_EQ(scalar::max(Expr::constant(f32, NAN), Expr::constant(f32, 1)).str(), "nan");
  EXPECT_EQ(scalar::select(Expr::constant(boolean, 1), x, -x).str(), "f32(i0)");
  EXPECT_EQ(scalar::cast(x, f16).get(), x.get());
  EXPECT_EQ(Expr::constant(f64, 0.1).str(), "0.1_f64");
  EXPECT_EQ((Expr::constant(u8, 255) + 1.0).str(), "0_u8");
}

TEST(Expr, FoldsIntegersOfEveryWidth) {
  const Expr x = scalar::cast(kI, i32), four = Expr::constant(i32, 4);
  EXPECT_EQ(scalar::floordiv(x * 8 + 5, four).str(), "i32(i0) * 2_i32 + 1_i32");
  EXPECT_EQ(scalar::mod(x * 8 + 5, four).str(), "1_i32");
  const int64_t odd = (int64_t{1} << 54) + (int64_t{1} << 30) + 1;  // halfway as a double
  EXPECT_EQ(scalar::cast(Expr::index(odd), f32).node().fvalue, static_cast<float>(odd));
}

TEST(Expr, PrintsWithFewParentheses) {
  const Expr x = scalar::cast(kI, f32), y = scalar::cast(kJ, f32);
  EXPECT_EQ((x - (y - x)).str(), "f32(i0) - (f32(i1) - f32(i0))");
  EXPECT_EQ(((x + y) * x / y).str(), "(f32(i0) + f32(i1)) * f32(i0) / f32(i1)");
  EXPECT_EQ((-(x + y)).str(), "-(f32(i0) + f32(i1))");
  const Expr less = scalar::compare(ScalarOp::lt, x, y);
  EXPECT_EQ(scalar::logical_and(less, scalar::logical_not(less)).str(),
            "f32(i0) < f32(i1) && !(f32(i0) < f32(i1))");
}

TEST(Expr, RewritesAndRefolds) {
  const Expr e = scalar::floordiv(kI * 2 + kJ, Expr::index(4)) + kJ;
  const Expr at = rewrite(e, [](const Expr& n) {
    return n.op() == ScalarOp::var ? Expr::index(n.node().ivalue == 0 ? 3 : 2) : Expr();
  });
  EXPECT_EQ(at.str(), "4");
  int nodes = 0;
  for_each_node(kI + kI * 2, [&](const Expr&) { ++nodes; });
  EXPECT_EQ(nodes, 4);
}

TEST(Expr, FindsAffineForms) {
  const auto form = as_affine((kI - kJ * 3) * 2 + 7);
  ASSERT_TRUE(form.has_value());
  EXPECT_EQ(form->coefficient(0), 2);
  EXPECT_EQ(form->coefficient(1), -6);
  EXPECT_EQ(form->coefficient(2), 0);
  EXPECT_EQ(form->offset, 7);
  EXPECT_FALSE(as_affine(kI * kJ).has_value());
  EXPECT_FALSE(as_affine(scalar::mod(kI, Expr::index(3))).has_value());
}

}  // namespace
}  // namespace fluid::expr_test
