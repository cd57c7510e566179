#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "frontend/images/image.h"

namespace fluid {

/// tests/golden/images.json.
inline const nlohmann::json& image_goldens() {
  static const nlohmann::json goldens = [] {
    std::ifstream file(std::string(FLUID_SOURCE_DIR) + "/tests/golden/images.json");
    return nlohmann::json::parse(file);
  }();
  return goldens;
}

inline std::string bytes_of_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

/// The bytes of an image file of the goldens, such as "420.jpg".
inline std::string golden_image_file(const std::string& name) {
  for (const auto& file : image_goldens()["files"]) {
    if (file["name"] == name) return bytes_of_hex(file["file"].get<std::string>());
  }
  return "";
}

/// The image `pattern` of tests/golden/images.py.
inline Image pattern_image(int64_t height = 12, int64_t width = 17) {
  Image image(height, width, 3);
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < 3; ++c) {
        const int64_t noise = (x * 2654435761 + y * 40503 + c * 97) % 65536 / 7 % 90;
        image.row(y)[x * 3 + c] = static_cast<uint8_t>((x * 11 + y * 17 + c * 83 + noise) % 256);
      }
    }
  }
  return image;
}

}  // namespace fluid
