#include "frontend/readers/image_files.h"

#include <algorithm>
#include <cstring>

#include "ir/error.h"

namespace fluid {
namespace {

/// Opening the data fails if its first kMaxDamagedFirst images are all damaged.
constexpr int64_t kMaxDamagedFirst = 100;

}  // namespace

Image first_image(int64_t samples, const std::function<Image(int64_t)>& decode) {
  for (int64_t sample = 0;; ++sample) {
    try {
      return decode(sample);
    } catch (const UserError&) {
      if (sample + 1 >= std::min(samples, kMaxDamagedFirst)) throw;
    }
  }
}

void ImageFiles::set_image_type() {
  const Image first = first_image(samples(), [this](int64_t sample) { return decode(sample); });
  columns_[0].shape = {first.channels, first.height, first.width};
}

Image ImageFiles::image(int64_t sample, size_t, const AugmentationSeed&) const {
  return decode(sample);
}

void ImageFiles::read(int64_t sample, const AugmentationSeed&,
                      std::span<std::byte* const> to) const {
  if (to[1] != nullptr) {
    const int64_t value = label(sample);
    std::memcpy(to[1], &value, sizeof value);
  }
  if (to[0] == nullptr) return;
  const Image image = decode(sample);
  const std::vector<int64_t>& shape = columns_[0].shape;
  if (image.height != shape[1] || image.width != shape[2]) {
    throw UserError(location(sample) + ": the image is " + std::to_string(image.height) + "x" +
                    std::to_string(image.width) + ", but the first is " + std::to_string(shape[1]) +
                    "x" + std::to_string(shape[2]) + ": add |resize=HxW or a crop to the data");
  }
  image.copy_to_chw({reinterpret_cast<uint8_t*>(to[0]), image.pixels.size()});
}

}  // namespace fluid
