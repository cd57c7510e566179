#include "tests/support/kir_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "codegen/compiler.h"
#include "ops/random/philox.h"
#include "tests/support/kir_interpreter.h"

namespace fluid::testing {
namespace {

constexpr size_t kGuardBytes = 256;
constexpr uint8_t kGuard = 0xA5;

/// A copy of a tensor's bytes at a 64-byte boundary between guards.
class GuardedCopy {
 public:
  explicit GuardedCopy(const Tensor& t) : bytes_(static_cast<size_t>(t.bytes())) {
    storage_.assign(bytes_ + 2 * kGuardBytes + 64, kGuard);
    auto start = reinterpret_cast<uintptr_t>(storage_.data()) + kGuardBytes;
    data_ = reinterpret_cast<uint8_t*>((start + 63) / 64 * 64);
    if (bytes_ > 0) std::memcpy(data_, t.data(), bytes_);
  }
  uint8_t* data() const { return data_; }
  bool intact() const {
    for (const uint8_t& byte : storage_) {
      const bool outside = &byte < data_ || &byte >= data_ + bytes_;
      if (outside && byte != kGuard) return false;
    }
    return true;
  }

 private:
  size_t bytes_;
  std::vector<uint8_t> storage_;
  uint8_t* data_;
};

double ulp(DType dtype, double at) {
  const int digits = dtype == DType::f64   ? 52
                     : dtype == DType::f32 ? 23
                     : dtype == DType::f16 ? 10
                                           : 7;
  const int lowest = dtype == DType::f64 ? -1022 : dtype == DType::f16 ? -14 : -126;
  const int exponent = at == 0 ? lowest : std::max(std::ilogb(at), lowest);
  return std::ldexp(1.0, exponent - digits);
}

bool agree(DType dtype, double got, double want, double ulps) {
  if (std::isnan(want)) return std::isnan(got);
  if (got == want) return true;
  return is_float(dtype) && std::isfinite(want) && std::isfinite(got) &&
         std::fabs(got - want) <= ulps * ulp(dtype, want);
}

}  // namespace

void expect_as_interpreted(const kir::Kernel& kernel, const std::vector<Tensor>& buffers,
                           int64_t batch, double ulps, const std::string& cpu) {
  SCOPED_TRACE(cpu + "\n" + kir::print(kernel));
  std::vector<GuardedCopy> got(buffers.begin(), buffers.end());
  std::vector<GuardedCopy> want(buffers.begin(), buffers.end());
  std::vector<void*> got_pointers, want_pointers;
  for (const GuardedCopy& copy : got) got_pointers.push_back(copy.data());
  for (const GuardedCopy& copy : want) want_pointers.push_back(copy.data());

  interpret(kernel, want_pointers, batch);
  Compiler compiler({.cpu = cpu});
  const CompiledKernel code = compiler.compile(kernel);
  const int64_t blocks = kir::evaluate(kernel.blocks, batch);
  for (int64_t i = blocks - 1; i >= 0; --i) code.body(got_pointers.data(), batch, i, i + 1);
  if (code.finish) code.finish(got_pointers.data(), batch, 0, 1);

  for (size_t i = 0; i < buffers.size(); ++i) {
    if (kernel.buffers[i].role == kir::Buffer::Role::local) continue;
    const DType dtype = kernel.buffers[i].dtype;
    EXPECT_TRUE(got[i].intact()) << "writes outside " << kernel.buffers[i].name;
    const Tensor a = Tensor::view(dtype, buffers[i].shape(), got[i].data());
    const Tensor b = Tensor::view(dtype, buffers[i].shape(), want[i].data());
    for (int64_t j = 0; j < a.numel(); ++j) {
      ASSERT_TRUE(agree(dtype, a.at(j), b.at(j), ulps))
          << kernel.buffers[i].name << "[" << j << "] is " << a.at(j) << " instead of " << b.at(j);
    }
  }
}

Tensor sample(DType dtype, int64_t elements, uint64_t seed) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> edges = {0,   -0.0, 1,        -1,        0.5,
                                     2.5, -3.5, infinity, -infinity, std::nan("")};
  Tensor t(DType::f64, {elements});
  for (int64_t i = 0; i < elements; ++i) {
    const auto bits = philox_bits(static_cast<int64_t>(seed), 0, 0, i);
    double v = (bits / 0x1p32 - 0.5) * 40;
    if (is_float(dtype) && bits % 7 == 0) v = edges[bits / 7 % edges.size()];
    if (is_integer(dtype)) v = static_cast<double>(bits >> 24) - (dtype == DType::u8 ? 0 : 128);
    if (dtype == DType::boolean) v = bits & 1;
    t.as<double>()[static_cast<size_t>(i)] = v;
  }
  return t.cast(dtype);
}

}  // namespace fluid::testing
