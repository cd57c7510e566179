// Arithmetic instructions of PTX.

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "tests/support/ptx_values.h"

namespace fluid::testing {
namespace {

struct Add {
  template <Arithmetic T>
  T operator()(T a, T b) {
    return T(wrapping(a) + wrapping(b));
  }
};

struct Sub {
  template <Arithmetic T>
  T operator()(T a, T b) {
    return T(wrapping(a) - wrapping(b));
  }
};

struct Mul {
  template <Arithmetic T>
  T operator()(T a, T b) {
    return T(wrapping(a) * wrapping(b));
  }
};

struct Mad {
  template <Integer T>
  T operator()(T a, T b, T c) {
    return T(wrapping(a) * wrapping(b) + wrapping(c));
  }
};

struct MulHigh {
  template <Integer T>
  T operator()(T a, T b) {
    using Product = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return T((Product(a) * Product(b)) >> (8 * sizeof(T)));
  }
};

/// A GPU gives something for a division by zero; what reads it is wrong.
struct Div {
  template <Integer T>
  T operator()(T a, T b) {
    if (b == 0) return T(~T(0));
    return std::is_signed_v<T> && b == T(-1) ? T(0 - wrapping(a)) : T(a / b);
  }
  template <Real T>
  T operator()(T a, T b) {
    return a / b;
  }
};

struct Rem {
  template <Integer T>
  T operator()(T a, T b) {
    return b == 0 || (std::is_signed_v<T> && b == T(-1)) ? T(0) : T(a % b);
  }
};

struct Fma {
  template <Real T>
  T operator()(T a, T b, T c) {
    return std::fma(a, b, c);
  }
};

template <bool kMost, bool kKeepsNan>
struct Extreme {
  template <Integer T>
  T operator()(T a, T b) {
    return kMost ? std::max(a, b) : std::min(a, b);
  }
  template <Real T>
  T operator()(T a, T b) {
    if (std::isnan(a) || std::isnan(b)) {
      if (kKeepsNan || (std::isnan(a) && std::isnan(b))) return std::numeric_limits<T>::quiet_NaN();
      return std::isnan(a) ? b : a;
    }
    if (a == b) return std::signbit(a) == kMost ? b : a;  // -0 is less than 0
    return (a > b) == kMost ? a : b;
  }
};

struct Neg {
  template <Arithmetic T>
  T operator()(T a) {
    return T(-wrapping(a));
  }
};

struct Abs {
  template <Integer T>
  T operator()(T a) {
    return negative(a) ? T(0 - wrapping(a)) : a;
  }
  template <Real T>
  T operator()(T a) {
    return std::fabs(a);
  }
};

struct CopySign {
  template <Real T>
  T operator()(T sign, T value) {
    return std::copysign(value, sign);
  }
};

struct Sqrt {
  template <Real T>
  T operator()(T a) {
    return std::sqrt(a);
  }
};

struct Reciprocal {
  template <Real T>
  T operator()(T a) {
    return 1 / a;
  }
};

/// Product of two Ts, twice as wide.
template <class T, class Product>
void multiply_wide(PtxThread& t, const PtxInstruction& i) {
  put<Product>(t, i.to[0], Product{get<T>(t, i.from[0])} * Product{get<T>(t, i.from[1])});
}

PtxRun wide_product(std::string_view type) {
  if (type == "u16") return multiply_wide<uint16_t, uint32_t>;
  if (type == "s16") return multiply_wide<int16_t, int32_t>;
  if (type == "u32") return multiply_wide<uint32_t, uint64_t>;
  if (type == "s32") return multiply_wide<int32_t, int64_t>;
  return nullptr;
}

/// F of each of the two Ts that registers hold.
template <class T, size_t kOperands, class F>
void of_pairs(PtxThread& t, const PtxInstruction& i) {
  uint64_t result = 0;
  for (const size_t at : {size_t{0}, 8 * sizeof(T)}) {
    std::array<Wide<T>, kOperands> x;
    for (size_t k = 0; k < kOperands; ++k) {
      x[k] = static_cast<Wide<T>>(as<T>(bits_in(t, i.from.at(k)) >> at));
    }
    const T value(std::apply(F(), x));
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    result |= bits << at;
  }
  t.registers[i.to[0].number] = result;
}

/// Operations on half-precision operands with an f32 as the last operand.
template <class T>
PtxRun mixed(std::string_view what) {
  if (what == "fma") {
    return [](PtxThread& t, const PtxInstruction& i) {
      put<float>(t, i.to[0],
                 std::fma(get<T>(t, i.from[0]), get<T>(t, i.from[1]), get<float>(t, i.from[2])));
    };
  }
  if (what == "add") {
    return [](PtxThread& t, const PtxInstruction& i) {
      put<float>(t, i.to[0], get<T>(t, i.from[0]) + get<float>(t, i.from[1]));
    };
  }
  if (what != "sub") return nullptr;
  return [](PtxThread& t, const PtxInstruction& i) {
    put<float>(t, i.to[0], get<T>(t, i.from[0]) - get<float>(t, i.from[1]));
  };
}

template <class T>
PtxRun pairs(std::string_view what) {
  if (what == "add") return of_pairs<T, 2, Add>;
  if (what == "sub") return of_pairs<T, 2, Sub>;
  if (what == "mul") return of_pairs<T, 2, Mul>;
  if (what == "fma") return of_pairs<T, 3, Fma>;
  if (what == "neg") return of_pairs<T, 1, Neg>;
  if (what == "abs") return of_pairs<T, 1, Abs>;
  return nullptr;
}

template <class T>
PtxRun integer_pairs(std::string_view what) {
  if (what == "add") return of_pairs<T, 2, Add>;
  if (what == "sub") return of_pairs<T, 2, Sub>;
  if (what == "min") return of_pairs<T, 2, Extreme<false, false>>;
  if (what == "max") return of_pairs<T, 2, Extreme<true, false>>;
  return nullptr;
}

}  // namespace

PtxRun ptx_arithmetic(const PtxName& name) {
  const std::string_view what = name[0], type = name.back();
  if (type == "f16x2") return pairs<F16>(what);
  if (type == "f32x2") return pairs<float>(what);
  if (type == "s16x2") return integer_pairs<int16_t>(what);
  if (type == "u16x2") return integer_pairs<uint16_t>(what);
  if (name.size() == 4 && name[1] == "rn" && name[2] == "f32") {
    return type == "f16" ? mixed<F16>(what) : type == "bf16" ? mixed<BF16>(what) : nullptr;
  }
  const bool low = name.size() == 3 && name[1] == "lo";
  const bool plain = name.size() == 2 || (name.size() == 3 && name[1] == "rn");
  if (what == "mul" && low) return elementwise<2, Mul>(type);
  if (what == "mad" && low) return elementwise<3, Mad>(type);
  if (what == "mul" && name[1] == "hi") return elementwise<2, MulHigh>(type);
  if (what == "mul" && name[1] == "wide") return wide_product(type);
  if (what == "min" && name[1] == "NaN") return elementwise<2, Extreme<false, true>>(type);
  if (what == "max" && name[1] == "NaN") return elementwise<2, Extreme<true, true>>(type);
  if (!plain) return nullptr;
  if (what == "add") return elementwise<2, Add>(type);
  if (what == "sub") return elementwise<2, Sub>(type);
  if (what == "mul") return elementwise<2, Mul>(type);
  if (what == "div") return elementwise<2, Div>(type);
  if (what == "rem") return elementwise<2, Rem>(type);
  if (what == "fma") return elementwise<3, Fma>(type);
  if (what == "min") return elementwise<2, Extreme<false, false>>(type);
  if (what == "max") return elementwise<2, Extreme<true, false>>(type);
  if (what == "neg") return elementwise<1, Neg>(type);
  if (what == "abs") return elementwise<1, Abs>(type);
  if (what == "copysign") return elementwise<2, CopySign>(type);
  if (what == "sqrt") return elementwise<1, Sqrt>(type);
  if (what == "rcp") return elementwise<1, Reciprocal>(type);
  return nullptr;
}

}  // namespace fluid::testing
