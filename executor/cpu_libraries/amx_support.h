#pragma once

namespace fluid {

/// Whether this CPU multiplies tiles of bf16, has the AVX-512 extensions that amx.h names, and the
/// operating system lets this process use the tile registers.
bool cpu_supports_amx();

}  // namespace fluid
