#pragma once

#include <cmath>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ir/tensor.h"

namespace fluid::testing {

/// n numbers in [0, 1): splitmix64 (Steele et al., OOPSLA'14) of (stream << 32) + index, its top 53
/// bits. The same numbers as `uniform` in tests/golden/training.py, bit for bit.
inline std::vector<double> golden_uniform(uint64_t stream, int64_t n) {
  std::vector<double> u(static_cast<size_t>(n));
  for (uint64_t i = 0; i < u.size(); ++i) {
    uint64_t z = ((stream << 32) + i + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z = z ^ (z >> 31);
    u[i] = static_cast<double>(z >> 11) * 0x1p-53;
  }
  return u;
}

/// 2 u - 1 for the numbers u of golden_uniform(stream), in f64.
inline Tensor golden_tensor(uint64_t stream, const std::vector<int64_t>& shape) {
  Tensor t(f64, shape);
  const std::vector<double> uniform = golden_uniform(stream, t.numel());
  for (size_t i = 0; i < uniform.size(); ++i) t.as<double>()[i] = 2 * uniform[i] - 1;
  return t;
}

/// The contents of tests/golden/`file`.
inline nlohmann::json golden_json(const std::string& file) {
  return nlohmann::json::parse(std::ifstream(FLUID_SOURCE_DIR "/tests/golden/" + file));
}

/// The start values of parameter `k` of a golden run: uniform in +-1/sqrt(fan_in).
inline std::vector<double> golden_parameter(uint64_t k, int64_t n, double fan_in) {
  std::vector<double> values = golden_uniform(k, n);
  for (double& v : values) v = (2 * v - 1) / std::sqrt(fan_in);
  return values;
}

}  // namespace fluid::testing
