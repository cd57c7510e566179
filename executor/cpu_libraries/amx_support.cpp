#include "executor/cpu_libraries/amx_support.h"

#include <algorithm>

#include "executor/cpu_libraries/avx512_support.h"
#include "executor/host/host_cpu.h"
#include "executor/host/tile_registers.h"

namespace fluid {

bool cpu_supports_amx() {
  static const bool supports = [] {
    const std::vector<std::string> features = host_cpu().features;
    const auto has = [&](const char* feature) {
      return std::ranges::find(features, feature) != features.end();
    };
    return cpu_supports_avx512() && has("avx512_bf16") && has("amx_tile") && has("amx_bf16") &&
           request_tile_registers();
  }();
  return supports;
}

}  // namespace fluid
