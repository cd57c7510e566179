#include "frontend/images/image.h"

namespace fluid {

Image Image::from_planes(int64_t height, int64_t width, int64_t channels,
                         std::span<const uint8_t> planes) {
  Image image(height, width, channels);
  const int64_t plane = height * width;
  for (int64_t c = 0; c < channels; ++c) {
    const uint8_t* from = planes.data() + c * plane;
    uint8_t* to = image.pixels.data() + c;
    for (int64_t i = 0; i < plane; ++i) to[i * channels] = from[i];
  }
  return image;
}

void Image::copy_to_chw(std::span<uint8_t> planes) const {
  const int64_t plane = height * width;
  for (int64_t c = 0; c < channels; ++c) {
    const uint8_t* from = pixels.data() + c;
    uint8_t* to = planes.data() + c * plane;
    for (int64_t i = 0; i < plane; ++i) to[i] = from[i * channels];
  }
}

}  // namespace fluid
