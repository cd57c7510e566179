#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "codegen/compiler.h"
#include "ops/random/philox.h"
#include "tests/support/kir_builder.h"

namespace fluid::testing::math_test {
namespace {

using Long = long double;

struct Function {
  ScalarOp op;
  const char* name;
  Long (*reference)(Long);
};

Long sigmoid(Long x) { return x > 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }
Long rsqrt(Long x) { return 1 / std::sqrt(x); }

constexpr Function kFunctions[] = {
    {ScalarOp::exp, "exp", std::exp},        {ScalarOp::expm1, "expm1", std::expm1},
    {ScalarOp::log, "log", std::log},        {ScalarOp::log1p, "log1p", std::log1p},
    {ScalarOp::tanh, "tanh", std::tanh},     {ScalarOp::erf, "erf", std::erf},
    {ScalarOp::sigmoid, "sigmoid", sigmoid}, {ScalarOp::rsqrt, "rsqrt", rsqrt},
    {ScalarOp::sin, "sin", std::sin},        {ScalarOp::cos, "cos", std::cos},
};

/// Distance in units of the last place of T at the true value; infinite when the kind differs.
template <class T>
double error_in_ulps(T got, Long want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : std::numeric_limits<double>::infinity();
  const T rounded = static_cast<T>(want);
  if (std::isinf(rounded) || std::isinf(got)) {
    return got == rounded ? 0 : std::numeric_limits<double>::infinity();
  }
  if (want == 0) {
    const bool same = got == 0 && std::signbit(got) == std::signbit(want);
    return same ? 0 : std::numeric_limits<double>::infinity();
  }
  const int lowest = std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits;
  const int last = std::max(std::ilogb(want) - std::numeric_limits<T>::digits + 1, lowest);
  return static_cast<double>(std::fabs((static_cast<Long>(got) - want) / std::ldexp(1.0L, last)));
}

/// Every 997th bit pattern, every exponent's ends, and the specials.
std::vector<float> float_inputs() {
  std::vector<float> v;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 997) {
    v.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  for (uint32_t exponent = 0; exponent < 512; ++exponent) {
    for (uint32_t mantissa : {0u, 1u, 0x400000u, 0x7fffffu}) {
      v.push_back(std::bit_cast<float>(exponent << 23 | mantissa));
    }
  }
  for (int64_t i = 0; i < 200000; ++i) {  // densely where the functions move
    v.push_back(static_cast<float>((philox_bits(3, 0, 0, i) / 0x1p32 - 0.5) * 12));
  }
  return v;
}

std::vector<double> double_inputs() {
  std::vector<double> v;
  for (uint64_t exponent = 0; exponent < 4096; ++exponent) {
    for (uint64_t i = 0; i < 60; ++i) {
      const uint64_t high = philox_bits(5, static_cast<int64_t>(i), 0, exponent);
      const uint64_t mantissa = i == 0 ? 0 : i == 1 ? ~uint64_t{0} : high << 20 ^ high << 9;
      v.push_back(std::bit_cast<double>(exponent << 52 | (mantissa & ((uint64_t{1} << 52) - 1))));
    }
  }
  for (int64_t i = 0; i < 100000; ++i) {
    v.push_back((philox_bits(7, 0, 0, i) / 0x1p32 - 0.5 + philox_bits(8, 0, 0, i) / 0x1p64) * 80);
    v.push_back((philox_bits(9, 0, 0, i) / 0x1p32 - 0.5) * 3);
  }
  return v;
}

template <class T>
void run(DType dtype, const Expr& value, std::vector<const T*> in, T* out, size_t n) {
  std::vector<kir::Buffer> buffers;
  std::vector<void*> pointers;
  for (const T* p : in) {
    buffers.push_back(input("x" + std::to_string(buffers.size()), dtype, static_cast<int64_t>(n)));
    pointers.push_back(const_cast<T*>(p));
  }
  buffers.push_back(output("y", dtype, static_cast<int64_t>(n)));
  pointers.push_back(out);
  const kir::Kernel kernel = one_block(
      buffers,
      {loop(kir::For::Kind::vector, 0, Expr::index(0), Expr::index(static_cast<int64_t>(n)),
            {store(static_cast<int64_t>(in.size()), Expr::var(0), value)})});
  Compiler compiler({});
  compiler.compile(kernel).body(pointers.data(), 1, 0, 1);
}

template <class T>
void sweep(DType dtype, const std::vector<T>& x, double bound) {
  for (const Function& f : kFunctions) {
    std::vector<T> y(x.size());
    run<T>(dtype, scalar::unary(f.op, load(0, dtype, Expr::var(0))), {x.data()}, y.data(),
           x.size());
    double worst = 0;
    T at = 0, got = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      if (f.op == ScalarOp::rsqrt && x[i] == 0) continue;
      const double error = error_in_ulps(y[i], f.reference(x[i]));
      if (error > worst) worst = error, at = x[i], got = y[i];
    }
    EXPECT_LE(worst, bound) << f.name << "(" << at << ") is " << got << ", not " << f.reference(at);
    std::printf("%s %s: %.2f ulp\n", f.name, name_of(dtype).data(), worst);
  }
}

TEST(Math, F32Within2Ulp) { sweep(f32, float_inputs(), 2.0); }
TEST(Math, F64Within4Ulp) { sweep(f64, double_inputs(), 4.0); }

template <class T>
void sweep_power(DType dtype, const std::vector<T>& x, const std::vector<T>& y, double bound) {
  std::vector<T> z(x.size());
  const Expr i = Expr::var(0);
  run<T>(dtype, scalar::pow(load(0, dtype, i), load(1, dtype, i)), {x.data(), y.data()}, z.data(),
         x.size());
  double worst = 0;
  for (size_t k = 0; k < x.size(); ++k) {
    const double error =
        error_in_ulps(z[k], std::pow(static_cast<Long>(x[k]), static_cast<Long>(y[k])));
    ASSERT_LE(error, bound) << "pow(" << x[k] << ", " << y[k] << ") is " << z[k];
    worst = std::max(worst, error);
  }
  std::printf("pow %s: %.2f ulp\n", name_of(dtype).data(), worst);
}

template <class T>
void power_inputs(std::vector<T>& x, std::vector<T>& y) {
  const T infinity = std::numeric_limits<T>::infinity();
  const std::vector<T> special = {0,
                                  T(-0.0),
                                  1,
                                  -1,
                                  2,
                                  -2,
                                  3,
                                  T(0.5),
                                  T(-0.5),
                                  T(1e30),
                                  T(-1e30),
                                  7,
                                  -7,
                                  T(-2.5),
                                  infinity,
                                  -infinity,
                                  std::numeric_limits<T>::denorm_min(),
                                  std::numeric_limits<T>::quiet_NaN()};
  for (T a : special) {
    for (T b : special) x.push_back(a), y.push_back(b);
  }
  for (int64_t i = 0; i < 200000; ++i) {
    const double u = philox_bits(11, 0, 0, i) / 0x1p32, v = philox_bits(12, 0, 0, i) / 0x1p32;
    x.push_back(static_cast<T>(std::exp((u - 0.5) * (i % 3 ? 10 : 0.01))));
    y.push_back(static_cast<T>((v - 0.5) * (i % 2 ? 20 : 300)));
  }
}

TEST(Math, PowerOfF32Within2Ulp) {
  std::vector<float> x, y;
  power_inputs(x, y);
  sweep_power(f32, x, y, 2.0);
}

TEST(Math, PowerOfF64Within4Ulp) {
  std::vector<double> x, y;
  power_inputs(x, y);
  sweep_power(f64, x, y, 4.0);
}

}  // namespace
}  // namespace fluid::testing::math_test
