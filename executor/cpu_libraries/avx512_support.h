#pragma once

namespace fluid {

/// Whether this CPU has the AVX-512 extensions that avx512.h names.
bool cpu_supports_avx512();

}  // namespace fluid
