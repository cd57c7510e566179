// Bit instructions of PTX: moves, comparisons, selections, conversions.

#include <bit>
#include <cmath>
#include <limits>

#include "tests/support/ptx_values.h"

namespace fluid::testing {
namespace {

struct And {
  template <std::integral T>
  T operator()(T a, T b) {
    return T(a & b);
  }
};

struct Or {
  template <std::integral T>
  T operator()(T a, T b) {
    return T(a | b);
  }
};

struct Xor {
  template <std::integral T>
  T operator()(T a, T b) {
    return T(a ^ b);
  }
};

struct Not {
  template <std::integral T>
  T operator()(T a) {
    if constexpr (std::is_same_v<T, bool>)
      return !a;
    else
      return T(~a);
  }
};

struct CountOnes {
  template <Integer T>
  T operator()(T a) {
    return T(std::popcount(std::make_unsigned_t<T>(a)));
  }
};

struct CountZeros {
  template <Integer T>
  T operator()(T a) {
    return T(std::countl_zero(std::make_unsigned_t<T>(a)));
  }
};

template <bool kLeft>
PtxRun shift(std::string_view type) {
  return typed(type, []<class T>(T) -> PtxRun {
    if constexpr (Integer<T>) {
      return [](PtxThread& t, const PtxInstruction& i) {
        const T a = get<T>(t, i.from[0]);
        const uint32_t by = get<uint32_t>(t, i.from[1]);
        constexpr uint32_t kBits = 8 * sizeof(T);
        if (by >= kBits) return put<T>(t, i.to[0], T(!kLeft && negative(a) ? -1 : 0));
        put<T>(t, i.to[0], kLeft ? T(wrapping(a) << by) : T(a >> by));
      };
    } else {
      return nullptr;
    }
  });
}

/// Fields of numbers, of signed ones with their sign.
PtxRun extract(std::string_view type) {
  return typed(type, []<class T>(T) -> PtxRun {
    if constexpr (std::is_same_v<T, int64_t>) {
      return [](PtxThread& t, const PtxInstruction& i) {
        const uint32_t at = std::min(get<uint32_t>(t, i.from[1]) & 255, 63U);
        const uint32_t length = get<uint32_t>(t, i.from[2]) & 255;
        const int64_t bits = get<T>(t, i.from[0]) >> at;
        const uint32_t above = length < 64 ? 64 - length : 0;
        const auto moved = static_cast<int64_t>(static_cast<uint64_t>(bits) << (above % 64));
        put<T>(t, i.to[0], length == 0 ? 0 : moved >> (above % 64));
      };
    } else if constexpr (std::is_unsigned_v<T> && sizeof(T) >= 4) {
      return [](PtxThread& t, const PtxInstruction& i) {
        const uint32_t at = get<uint32_t>(t, i.from[1]) & 255;
        const uint32_t length = get<uint32_t>(t, i.from[2]) & 255;
        const uint64_t bits = at < 64 ? uint64_t{get<T>(t, i.from[0])} >> at : 0;
        put<T>(t, i.to[0], T(length < 64 ? bits & ((uint64_t{1} << length) - 1) : bits));
      };
    } else {
      return nullptr;
    }
  });
}

/// The lowest bits of a, as many as d says, in the place of those of b from c on.
template <class T>
void insert(PtxThread& t, const PtxInstruction& i) {
  const uint32_t at = get<uint32_t>(t, i.from[2]) & 255, length = get<uint32_t>(t, i.from[3]) & 255;
  const uint64_t ones = length < 64 ? (uint64_t{1} << length) - 1 : ~uint64_t{0};
  const uint64_t mask = at < 64 ? ones << at : 0;
  const uint64_t bits = at < 64 ? uint64_t{get<T>(t, i.from[0])} << at : 0;
  put<T>(t, i.to[0], T((get<T>(t, i.from[1]) & ~mask) | (bits & mask)));
}

/// A half of two registers side by side, shifted.
template <bool kLeft>
void shift_two(PtxThread& t, const PtxInstruction& i) {
  const uint64_t both = get<uint32_t>(t, i.from[0]) | uint64_t{get<uint32_t>(t, i.from[1])} << 32;
  const uint32_t by = get<uint32_t>(t, i.from[2]) & 31;
  put<uint32_t>(t, i.to[0], static_cast<uint32_t>(kLeft ? both << by >> 32 : both >> by));
}

/// Bytes of a and b as the nibbles of c choose.
void permute(PtxThread& t, const PtxInstruction& i) {
  const uint64_t bytes = get<uint32_t>(t, i.from[0]) | uint64_t{get<uint32_t>(t, i.from[1])} << 32;
  uint32_t result = 0;
  for (int n = 0; n < 4; ++n) {
    const uint32_t chosen = get<uint32_t>(t, i.from[2]) >> (4 * n) & 15;
    auto byte = static_cast<uint8_t>(bytes >> (8 * (chosen & 7)));
    if ((chosen & 8) != 0) byte = (byte & 0x80) != 0 ? 0xFF : 0;
    result |= uint32_t{byte} << (8 * n);
  }
  put<uint32_t>(t, i.to[0], result);
}
enum class Order : uint8_t { eq, ne, lt, le, gt, ge, num, nan };

/// `kUnordered`: also true where one of the two is no number.
template <Order kOrder, bool kUnordered, class V>
bool holds(V a, V b) {
  if (a != a || b != b) return kUnordered || kOrder == Order::nan;
  switch (kOrder) {
    case Order::eq:
      return a == b;
    case Order::ne:
      return a != b;
    case Order::lt:
      return a < b;
    case Order::le:
      return a <= b;
    case Order::gt:
      return a > b;
    case Order::ge:
      return a >= b;
    case Order::num:
      return true;
    case Order::nan:
      return false;
  }
  return false;
}

/// Compares two packed half-precision values, and writes one predicate for each.
template <Order kOrder, bool kUnordered, class H>
void compare_pairs(PtxThread& t, const PtxInstruction& i) {
  for (const size_t at : {0, 1}) {
    const auto half = [&](const PtxOperand& o) {
      return static_cast<float>(as<H>(bits_in(t, o) >> (16 * at)));
    };
    put<bool>(t, i.to.at(at), holds<kOrder, kUnordered>(half(i.from[0]), half(i.from[1])));
  }
}

template <Order kOrder, bool kUnordered>
PtxRun comparison(std::string_view type) {
  if (type == "f16x2") return compare_pairs<kOrder, kUnordered, F16>;
  if (type == "bf16x2") return compare_pairs<kOrder, kUnordered, BF16>;
  return typed(type, []<class T>(T) -> PtxRun {
    return [](PtxThread& t, const PtxInstruction& i) {
      put<bool>(t, i.to[0], holds<kOrder, kUnordered>(get<T>(t, i.from[0]), get<T>(t, i.from[1])));
    };
  });
}

PtxRun compare(std::string_view order, std::string_view type) {
  if (order == "eq") return comparison<Order::eq, false>(type);
  if (order == "ne") return comparison<Order::ne, false>(type);
  if (order == "lt" || order == "lo") return comparison<Order::lt, false>(type);
  if (order == "le" || order == "ls") return comparison<Order::le, false>(type);
  if (order == "gt" || order == "hi") return comparison<Order::gt, false>(type);
  if (order == "ge" || order == "hs") return comparison<Order::ge, false>(type);
  if (order == "equ") return comparison<Order::eq, true>(type);
  if (order == "neu") return comparison<Order::ne, true>(type);
  if (order == "ltu") return comparison<Order::lt, true>(type);
  if (order == "leu") return comparison<Order::le, true>(type);
  if (order == "gtu") return comparison<Order::gt, true>(type);
  if (order == "geu") return comparison<Order::ge, true>(type);
  if (order == "num") return comparison<Order::num, false>(type);
  if (order == "nan") return comparison<Order::nan, false>(type);
  return nullptr;
}

PtxRun select(std::string_view type) {
  return typed(type, []<class T>(T) -> PtxRun {
    return [](PtxThread& t, const PtxInstruction& i) {
      const bool first = get<bool>(t, i.from[2]);
      t.registers[i.to[0].number] =
          bits_in(t, i.from[first ? 0 : 1]) & (~uint64_t{0} >> (64 - 8 * sizeof(T)));
    };
  });
}

/// Between a register and the `count` that its bits are cut into.
PtxRun move(std::string_view type) {
  return typed(type, []<class T>(T) -> PtxRun {
    return [](PtxThread& t, const PtxInstruction& i) {
      constexpr uint32_t kBits = 8 * sizeof(T);
      constexpr uint64_t kAll = ~uint64_t{0} >> (64 - kBits);
      if (i.count == 1) {
        t.registers[i.to[0].number] = bits_in(t, i.from[0]) & kAll;
        return;
      }
      const uint32_t each = kBits / i.count;
      const uint64_t mask = (uint64_t{1} << each) - 1;
      uint64_t whole = i.joins ? 0 : bits_in(t, i.from[0]);
      for (uint32_t n = 0; n < i.count; ++n) {
        if (i.joins) {
          whole |= (bits_in(t, i.from.at(n)) & mask) << (n * each);
        } else {
          t.registers[i.to.at(n).number] = whole >> (n * each) & mask;
        }
      }
      if (i.joins) t.registers[i.to[0].number] = whole;
    };
  });
}

/// Converts to an integer. Saturates at the ends of its range; NaN becomes 0.
template <class To, class From>
To saturated(From value) {
  if (std::isnan(value)) return 0;
  constexpr auto kLeast = static_cast<From>(std::numeric_limits<To>::min());
  if (value <= kLeast) return std::numeric_limits<To>::min();
  if (value >= std::ldexp(From(1), std::numeric_limits<To>::digits)) {
    return std::numeric_limits<To>::max();
  }
  return static_cast<To>(value);
}

enum class Rounding : uint8_t { none, zero, down, up, even };

template <Rounding kRounding, class To, class From>
PtxRun conversion() {
  return [](PtxThread& t, const PtxInstruction& i) {
    auto value = get<From>(t, i.from[0]);
    if constexpr (std::is_floating_point_v<decltype(value)>) {
      if (kRounding == Rounding::zero) value = std::trunc(value);
      if (kRounding == Rounding::down) value = std::floor(value);
      if (kRounding == Rounding::up) value = std::ceil(value);
      if (kRounding == Rounding::even) value = std::nearbyint(value);
      if constexpr (std::is_integral_v<To>) return put<To>(t, i.to[0], saturated<To>(value));
    }
    if constexpr (kIsHalf<To>) {
      put<To>(t, i.to[0], static_cast<float>(value));
    } else {
      put<To>(t, i.to[0], static_cast<To>(value));
    }
  };
}

template <Rounding kRounding>
PtxRun convert(std::string_view to, std::string_view from) {
  return typed(to, [&]<class To>(To) -> PtxRun {
    return typed(from,
                 []<class From>(From) -> PtxRun { return conversion<kRounding, To, From>(); });
  });
}

/// Packs two f32 values into a pair of half-precision values; the first one is the upper half.
template <class To>
void convert_pair(PtxThread& t, const PtxInstruction& i) {
  const uint32_t high = To(get<float>(t, i.from[0])).bits, low = To(get<float>(t, i.from[1])).bits;
  put<uint32_t>(t, i.to[0], high << 16 | low);
}

PtxRun convert(const PtxName& name) {
  const std::string_view to = name[name.size() - 2], from = name.back();
  if (name.size() == 3) return convert<Rounding::none>(to, from);
  if (name.size() != 4) return nullptr;
  if (name[1] == "rn" && to == "f16x2" && from == "f32") return convert_pair<F16>;
  if (name[1] == "rn" && to == "bf16x2" && from == "f32") return convert_pair<BF16>;
  if (name[1] == "rn") return convert<Rounding::none>(to, from);
  if (name[1] == "rzi") return convert<Rounding::zero>(to, from);
  if (name[1] == "rmi") return convert<Rounding::down>(to, from);
  if (name[1] == "rpi") return convert<Rounding::up>(to, from);
  if (name[1] == "rni") return convert<Rounding::even>(to, from);
  return nullptr;
}

}  // namespace

PtxRun ptx_bits(const PtxName& name) {
  const std::string_view what = name[0], type = name.back();
  if (what == "and") return elementwise<2, And>(type);
  if (what == "or") return elementwise<2, Or>(type);
  if (what == "xor") return elementwise<2, Xor>(type);
  if (what == "not") return elementwise<1, Not>(type);
  if (what == "popc") return elementwise<1, CountOnes>(type);
  if (what == "clz") return elementwise<1, CountZeros>(type);
  if (what == "shl") return shift<true>(type);
  if (what == "shr") return shift<false>(type);
  if (what == "bfe") return extract(type);
  if (what == "bfi") return type == "b32" ? insert<uint32_t> : insert<uint64_t>;
  if (what == "shf") return name[1] == "l" ? shift_two<true> : shift_two<false>;
  if (what == "prmt") return permute;
  if (what == "selp") return select(type);
  if (what == "mov") return move(type);
  if (what == "cvta") return move(type);
  if (what == "setp") return compare(name[1], type);
  if (what == "cvt") return convert(name);
  return nullptr;
}

}  // namespace fluid::testing
