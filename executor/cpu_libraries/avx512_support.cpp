#include "executor/cpu_libraries/avx512_support.h"

namespace fluid {

bool cpu_supports_avx512() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("f16c");
#else
  return false;
#endif
}

}  // namespace fluid
