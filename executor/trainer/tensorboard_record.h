#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fluid {

/// CRC-32C (Castagnoli) of `bytes`, as in RFC 3720.
uint32_t crc32c(std::string_view bytes);

/// Returns `payload` as a record of a TFRecord file, the format of TensorBoard event files: the
/// length (u64), its masked CRC-32C (u32), the payload, and its masked CRC-32C (u32), all
/// little-endian.
std::string tensorboard_record(std::string_view payload);

}  // namespace fluid
