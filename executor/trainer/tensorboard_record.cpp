#include "executor/trainer/tensorboard_record.h"

#include <array>
#include <bit>

namespace fluid {
namespace {

constexpr uint32_t kReversedPolynomial = 0x82f63b78;

consteval std::array<uint32_t, 256> crc32c_table() {
  std::array<uint32_t, 256> table = {};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? kReversedPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

/// Returns the CRC-32C, masked as in TFRecord files. An unmasked CRC is weak for data that itself
/// contains CRCs.
uint32_t masked_crc(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8; }

template <class T>
std::string little_endian(T value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(T); ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = crc32c_table();
  uint32_t crc = ~uint32_t{0};
  for (const char c : bytes) crc = crc >> 8 ^ kTable[(crc ^ static_cast<uint8_t>(c)) & 0xff];
  return ~crc;
}

std::string tensorboard_record(std::string_view payload) {
  const std::string length = little_endian(uint64_t{payload.size()});
  std::string record = length + little_endian(masked_crc(length));
  record += payload;
  return record + little_endian(masked_crc(payload));
}

}  // namespace fluid
