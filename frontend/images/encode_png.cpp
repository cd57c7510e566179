#include "frontend/images/encode_png.h"

#include <png.h>

#include "ir/error.h"

namespace fluid {
namespace {

png_uint_32 format_of(int64_t channels) {
  switch (channels) {
    case 1:
      return PNG_FORMAT_GRAY;
    case 3:
      return PNG_FORMAT_RGB;
    case 4:
      return PNG_FORMAT_RGBA;
    default:
      throw UserError("a PNG file has 1, 3 or 4 channels, not " + std::to_string(channels));
  }
}

}  // namespace

std::string encode_png(const Image& image) {
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = format_of(image.channels);
  if (image.pixels.empty()) throw UserError("a PNG file needs at least one pixel");
  std::string file(PNG_IMAGE_PNG_SIZE_MAX(png), '\0');
  png_alloc_size_t bytes = file.size();
  if (png_image_write_to_memory(&png, file.data(), &bytes, 0, image.pixels.data(), 0, nullptr) ==
      0) {
    throw InternalError("cannot encode a PNG file: " + std::string(png.message));
  }
  file.resize(bytes);
  return file;
}

}  // namespace fluid
