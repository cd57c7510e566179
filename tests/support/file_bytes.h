#pragma once

// Data files as tests make them, byte by byte, so that they can be wrong.

#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "ir/error.h"

namespace fluid {

inline std::string big_endian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

/// An idx file of `n` square images, all pixels 7.
inline std::string idx_images(uint32_t n, uint32_t side = 28) {
  return big_endian(0x803) + big_endian(n) + big_endian(side) + big_endian(side) +
         std::string(size_t{n} * side * side, '\7');
}

/// An idx file with a label a byte.
inline std::string idx_labels(const std::string& values) {
  return big_endian(0x801) + big_endian(static_cast<uint32_t>(values.size())) + values;
}

/// A record of CIFAR-10's binary files: the label, then planes of red 1, green 2 and blue 3.
inline std::string cifar10_record(char label) {
  return label + std::string(1024, '\1') + std::string(1024, '\2') + std::string(1024, '\3');
}

inline std::string npy_bytes(const std::string& header, const std::string& data, char major = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += major;
  bytes += '\0';
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  if (major > 1) bytes += std::string(2, '\0');
  return bytes + header + data;
}

inline std::string safetensors_bytes(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

inline void write_gz(const std::string& path, const std::string& bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  check(file != nullptr, "cannot write " + path);
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

}  // namespace fluid
