#include "executor/fluidrun/draw_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace fluid {
namespace {

constexpr int64_t kMaxDrawnWidth = 96;

}  // namespace

bool is_image(const Tensor& t) {
  const auto& s = t.shape();
  return s.size() >= 3 && s[s.size() - 2] > 1 && s[s.size() - 1] > 1;
}

void draw_image(const Tensor& images, int64_t sample) {
  const auto& shape = images.shape();
  const int64_t height = shape[shape.size() - 2], width = shape[shape.size() - 1];
  const int64_t first = sample * (images.numel() / shape[0]);
  const int64_t step = (width + kMaxDrawnWidth - 1) / kMaxDrawnWidth;
  const auto pixel = [&](int64_t y, int64_t x) { return images.at(first + y * width + x); };
  double least = 0, most = 0;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      least = std::min(least, pixel(y, x));
      most = std::max(most, pixel(y, x));
    }
  }
  const auto is_set = [&](int64_t y, int64_t x) {
    return y < height && pixel(y, x) > least + (most - least) / 2;
  };
  constexpr const char* kBlocks[] = {" ", "▀", "▄", "█"};
  for (int64_t y = 0; y < height; y += 2 * step) {
    std::string line;
    for (int64_t x = 0; x < width; x += step) {
      line += kBlocks[(is_set(y, x) ? 1 : 0) + (is_set(y + step, x) ? 2 : 0)];
    }
    fmt::print("  {}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  }
}

}  // namespace fluid
