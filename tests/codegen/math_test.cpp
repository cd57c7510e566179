#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <ostream>
#include <type_traits>

#include "codegen/compiler.h"
#include "ops/random/philox.h"
#include "tests/support/full_run.h"
#include "tests/support/kir_builder.h"

namespace fluid::testing::math_test {
namespace {

using Long = long double;

/// A scalar with references that are more precise than f32 and f64.
struct Function {
  ScalarOp op;
  const char* name;
  double (*for_f32)(double);
  Long (*for_f64)(Long);
};
std::ostream& operator<<(std::ostream& out, const Function& f) { return out << f.name; }

template <class T>
T sigmoid(T x) {
  return x > 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}
template <class T>
T rsqrt(T x) {
  return 1 / std::sqrt(x);
}

constexpr Function kFunctions[] = {
    {ScalarOp::exp, "exp", std::exp, std::exp},
    {ScalarOp::exp2, "exp2", std::exp2, std::exp2},
    {ScalarOp::expm1, "expm1", std::expm1, std::expm1},
    {ScalarOp::log, "log", std::log, std::log},
    {ScalarOp::log2, "log2", std::log2, std::log2},
    {ScalarOp::log1p, "log1p", std::log1p, std::log1p},
    {ScalarOp::sinh, "sinh", std::sinh, std::sinh},
    {ScalarOp::cosh, "cosh", std::cosh, std::cosh},
    {ScalarOp::tanh, "tanh", std::tanh, std::tanh},
    {ScalarOp::asin, "asin", std::asin, std::asin},
    {ScalarOp::acos, "acos", std::acos, std::acos},
    {ScalarOp::atan, "atan", std::atan, std::atan},
    {ScalarOp::erf, "erf", std::erf, std::erf},
    {ScalarOp::sigmoid, "sigmoid", sigmoid, sigmoid},
    {ScalarOp::tan, "tan", std::tan, std::tan},
    {ScalarOp::sin, "sin", std::sin, std::sin},
    {ScalarOp::cos, "cos", std::cos, std::cos},
    {ScalarOp::rsqrt, "rsqrt", rsqrt, rsqrt},
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

constexpr uint64_t kFloats = uint64_t{1} << 32;
constexpr uint64_t kChunk = uint64_t{1} << 22;

/// A seeded sample of bit patterns, every exponent's ends and the specials.
std::vector<float> float_inputs() {
  std::vector<float> v;
  const auto add_bits = [&](uint32_t bits) { v.push_back(std::bit_cast<float>(bits)); };
  for (int64_t i = 0; i < 500000; ++i) add_bits(static_cast<uint32_t>(philox_bits(2, 0, 0, i)));
  for (uint32_t exponent = 0; exponent < 512; ++exponent) {
    for (uint32_t mantissa : {0u, 1u, 0x400000u, 0x7fffffu}) add_bits(exponent << 23 | mantissa);
  }
  for (int64_t i = 0; i < 200000; ++i) {  // densely where the functions move
    v.push_back(static_cast<float>((philox_bits(3, 0, 0, i) / 0x1p32 - 0.5) * 12));
  }
  return v;
}

/// All floats with bits in [begin, end).
std::vector<float> floats_between(uint64_t begin, uint64_t end) {
  std::vector<float> v;
  for (uint64_t bits = begin; bits < end; ++bits) {
    v.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
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
    v.push_back(static_cast<double>(i) * (M_PI / 2));
    v.push_back(1 + std::ldexp(philox_bits(10, 0, 0, i) / 0x1p32 - 0.5, -static_cast<int>(i % 50)));
  }
  v.push_back(0x1.6ac5b262ca1ffp849);  // the double that is closest to a multiple of pi/2
  return v;
}

/// The kernel y[i] = value for n elements, with buffers x0, x1, ... and y.
kir::Kernel map_kernel(DType dtype, const Expr& value, size_t operands, size_t n) {
  const auto elements = static_cast<int64_t>(n);
  std::vector<kir::Buffer> buffers;
  for (size_t i = 0; i < operands; ++i) {
    buffers.push_back(input("x" + std::to_string(i), dtype, elements));
  }
  buffers.push_back(output("y", dtype, elements));
  return one_block(buffers, {loop(kir::For::Kind::vector, 0, Expr::index(0), Expr::index(elements),
                                  {store(static_cast<int64_t>(operands), Expr::var(0), value)})});
}

/// Compares a function's kernel with its reference.
template <class T>
class Sweep {
 public:
  Sweep(DType dtype, const Function& function, const char* cpu = "")
      : dtype_(dtype), function_(function), compiler_({.cpu = cpu}) {}

  void run(const std::vector<T>& x) {
    if (x.size() != size_) {
      const Expr value = scalar::unary(function_.op, load(0, dtype_, Expr::var(0)));
      kernel_ = compiler_.compile(map_kernel(dtype_, value, 1, x.size()));
      size_ = x.size();
    }
    std::vector<T> y(x.size());
    void* buffers[] = {const_cast<T*>(x.data()), y.data()};
    kernel_.body(buffers, 1, 0, 1);
    for (size_t i = 0; i < x.size(); ++i) compare(x[i], y[i]);
  }

  void expect_within(double bound) const {
    EXPECT_LE(worst_, bound) << function_.name << "(" << at_ << ") is " << got_ << ", not "
                             << reference(at_);
    std::printf("%s %s: %.2f ulp\n", function_.name, name_of(dtype_).data(), worst_);
  }

 private:
  auto reference(T x) const {
    if constexpr (std::is_same_v<T, float>) return function_.for_f32(x);
    if constexpr (std::is_same_v<T, double>) return function_.for_f64(x);
  }

  void compare(T x, T y) {
    const auto want = reference(x);
    if (y == static_cast<T>(want) && y != 0) {  // rounded correctly
      worst_ = std::max(worst_, 0.5);
      return;
    }
    const double error = error_in_ulps(y, want);
    if (error > worst_) worst_ = error, at_ = x, got_ = y;
  }

  DType dtype_;
  const Function& function_;
  Compiler compiler_;
  CompiledKernel kernel_;
  size_t size_ = 0;
  double worst_ = 0;
  T at_ = 0, got_ = 0;
};

class ElementaryFunction : public ::testing::TestWithParam<Function> {};

TEST_P(ElementaryFunction, IsWithin2UlpInF32) {
  Sweep<float> sweep(f32, GetParam());
  sweep.run(float_inputs());
  for (uint64_t bits = 0; is_full_run() && bits < kFloats; bits += kChunk) {
    sweep.run(floats_between(bits, bits + kChunk));
  }
  sweep.expect_within(2);
}

TEST_P(ElementaryFunction, IsWithin2UlpInF32WithoutFma) {
  Sweep<float> sweep(f32, GetParam(), "x86-64-v2");
  sweep.run(float_inputs());
  sweep.expect_within(2);
}

TEST_P(ElementaryFunction, IsWithin4UlpInF64) {
  Sweep<double> sweep(f64, GetParam());
  sweep.run(double_inputs());
  sweep.expect_within(4);
}

INSTANTIATE_TEST_SUITE_P(Math, ElementaryFunction, ::testing::ValuesIn(kFunctions),
                         [](const auto& test) { return std::string(test.param.name); });

/// Compares `op` of all pairs (x[i], y[i]) with `reference` in long double.
template <class T>
void sweep_pairs(ScalarOp op, Long (*reference)(Long, Long), const std::vector<T>& x,
                 const std::vector<T>& y, double bound) {
  const DType dtype = sizeof(T) == 4 ? f32 : f64;
  std::vector<T> z(x.size());
  const Expr i = Expr::var(0);
  const Expr value = Expr::make(op, dtype, {load(0, dtype, i), load(1, dtype, i)});
  void* buffers[] = {const_cast<T*>(x.data()), const_cast<T*>(y.data()), z.data()};
  Compiler compiler({});
  compiler.compile(map_kernel(dtype, value, 2, x.size())).body(buffers, 1, 0, 1);
  double worst = 0;
  for (size_t k = 0; k < x.size(); ++k) {
    const double error =
        error_in_ulps(z[k], reference(static_cast<Long>(x[k]), static_cast<Long>(y[k])));
    ASSERT_LE(error, bound) << "f(" << x[k] << ", " << y[k] << ") is " << z[k];
    worst = std::max(worst, error);
  }
  std::printf("%s: %.2f ulp\n", name_of(dtype).data(), worst);
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
  sweep_pairs<float>(ScalarOp::pow, std::pow, x, y, 2.0);
}

TEST(Math, PowerOfF64Within4Ulp) {
  std::vector<double> x, y;
  power_inputs(x, y);
  sweep_pairs<double>(ScalarOp::pow, std::pow, x, y, 4.0);
}

Long floored_remainder_of(Long x, Long y) {
  const Long rest = std::fmod(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

/// Random signs, mantissas and exponents, subnormal numbers included.
template <class T>
void remainder_inputs(std::vector<T>& x, std::vector<T>& y) {
  power_inputs(x, y);
  using Limits = std::numeric_limits<T>;
  const int lowest = Limits::min_exponent - Limits::digits, range = Limits::max_exponent - lowest;
  const auto number = [&](uint64_t stream, int64_t i) {
    const auto bits = [&](uint64_t of) { return philox_bits(stream, of, 0, i) / 0x1p32; };
    const double magnitude = std::ldexp(1 + bits(0), lowest + static_cast<int>(bits(1) * range));
    return static_cast<T>(bits(2) < 0.5 ? -magnitude : magnitude);
  };
  for (int64_t i = 0; i < 100000; ++i) x.push_back(number(13, i)), y.push_back(number(14, i));
}

TEST(Math, RemaindersOfF32AreExact) {
  std::vector<float> x, y;
  remainder_inputs(x, y);
  sweep_pairs<float>(ScalarOp::mod, floored_remainder_of, x, y, 0.501);
}

TEST(Math, RemaindersOfF64AreExact) {
  std::vector<double> x, y;
  remainder_inputs(x, y);
  sweep_pairs<double>(ScalarOp::mod, floored_remainder_of, x, y, 0.501);
}

}  // namespace
}  // namespace fluid::testing::math_test
