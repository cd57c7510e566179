#pragma once

// How instructions of PTX read and write a thread's registers as values of its types.

#include <cstring>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ir/tensor.h"
#include "tests/support/ptx_thread.h"

namespace fluid::testing {

/// An instruction's name in parts: "ld", "global", "v4", "b32".
using PtxName = std::vector<std::string_view>;

template <DType kType>
struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float value) : bits(float_to_half(value, kType)) {}
  explicit operator float() const { return half_to_float(bits, kType); }
};
using F16 = Half<DType::f16>;
using BF16 = Half<DType::bf16>;

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, F16> || std::is_same_v<T, BF16>;
/// The type in which T is computed.
template <class T>
using Wide = std::conditional_t<kIsHalf<T>, float, T>;

/// A predicate is its lowest bit: `mov.pred %p1, -1` is true.
template <class T>
T as(uint64_t bits) {
  if constexpr (std::is_same_v<T, bool>) return (bits & 1) != 0;
  T value;
  std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
  return value;
}

inline uint64_t bits_in(const PtxThread& t, const PtxOperand& o) {
  return o.is_register ? t.registers[o.number] : o.bits;
}

template <class T>
Wide<T> get(const PtxThread& t, const PtxOperand& o) {
  return static_cast<Wide<T>>(as<T>(bits_in(t, o)));
}

template <class T, class V>
void put(PtxThread& t, const PtxOperand& o, V value) {
  const T narrow(value);
  uint64_t bits = 0;
  std::memcpy(&bits, &narrow, sizeof narrow);
  // A register may be wider than the type: cvt.s8 writes one of 16 bits.
  if constexpr (std::is_same_v<T, int8_t>) bits = static_cast<uint64_t>(narrow);
  t.registers[o.number] = bits;
}

/// Calls `make` with a value of the type that PTX calls `name`; null when there is none.
template <class Make>
PtxRun typed(std::string_view name, const Make& make) {
  if (name == "pred") return make(bool());
  if (name == "u8" || name == "b8") return make(uint8_t());
  if (name == "s8") return make(int8_t());
  if (name == "u16" || name == "b16") return make(uint16_t());
  if (name == "s16") return make(int16_t());
  if (name == "u32" || name == "b32") return make(uint32_t());
  if (name == "s32") return make(int32_t());
  if (name == "u64" || name == "b64") return make(uint64_t());
  if (name == "s64") return make(int64_t());
  if (name == "f16") return make(F16());
  if (name == "bf16") return make(BF16());
  if (name == "f32") return make(float());
  if (name == "f64") return make(double());
  return nullptr;
}

/// d = F(a), d = F(a, b) or d = F(a, b, c), all of one type that `kTakes` says F takes.
template <size_t kOperands, class F>
PtxRun elementwise(std::string_view type) {
  return typed(type, []<class T>(T) -> PtxRun {
    using W = Wide<T>;
    if constexpr (kOperands == 1 && std::is_invocable_v<F, W>) {
      return [](PtxThread& t, const PtxInstruction& i) {
        put<T>(t, i.to[0], F()(get<T>(t, i.from[0])));
      };
    } else if constexpr (kOperands == 2 && std::is_invocable_v<F, W, W>) {
      return [](PtxThread& t, const PtxInstruction& i) {
        put<T>(t, i.to[0], F()(get<T>(t, i.from[0]), get<T>(t, i.from[1])));
      };
    } else if constexpr (kOperands == 3 && std::is_invocable_v<F, W, W, W>) {
      return [](PtxThread& t, const PtxInstruction& i) {
        put<T>(t, i.to[0], F()(get<T>(t, i.from[0]), get<T>(t, i.from[1]), get<T>(t, i.from[2])));
      };
    } else {
      return nullptr;
    }
  });
}

template <class T>
concept Integer = std::is_integral_v<T> && !std::is_same_v<T, bool>;
template <class T>
concept Real = std::is_floating_point_v<T>;
template <class T>
concept Arithmetic = Integer<T> || Real<T>;

/// Without overflow: integers wrap around.
template <class T>
auto wrapping(T x) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<uint64_t>(x);
  else
    return x;
}

template <class T>
bool negative(T x) {
  if constexpr (std::is_signed_v<T>)
    return x < 0;
  else
    return false;
}

/// Each returns the implementation of an instruction; null if the instruction is not in its file.
PtxRun ptx_arithmetic(const PtxName& name);
PtxRun ptx_bits(const PtxName& name);

}  // namespace fluid::testing
