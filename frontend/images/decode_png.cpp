#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "frontend/images/decode.h"
#include "ir/error.h"

namespace fluid {
namespace {

struct PngBytes {
  const char* at;
  size_t left;
};

/// A PNG decoder. All members are trivially destructible, because libpng reports errors by longjmp,
/// which runs no destructors.
struct PngDecoder {
  png_structp png = nullptr;
  png_infop info = nullptr;
  PngBytes bytes;
  char text[200] = "out of memory";

  explicit PngDecoder(std::string_view source) : bytes{source.data(), source.size()} {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, jump_out, ignore_warning);
    if (png != nullptr) info = png_create_info_struct(png);
  }
  ~PngDecoder() { png_destroy_read_struct(&png, &info, nullptr); }
  PngDecoder(const PngDecoder&) = delete;

  [[noreturn]] static void jump_out(png_structp png, png_const_charp message) {
    auto* decoder = static_cast<PngDecoder*>(png_get_error_ptr(png));
    std::snprintf(decoder->text, sizeof decoder->text, "%s", message);
    png_longjmp(png, 1);
  }
  static void ignore_warning(png_structp, png_const_charp) {}
  static void take_bytes(png_structp png, png_bytep to, size_t count) {
    auto* source = static_cast<PngBytes*>(png_get_io_ptr(png));
    if (count > source->left) png_error(png, "premature end of file");
    std::memcpy(to, source->at, count);
    source->at += count;
    source->left -= count;
  }

  bool read_header() {
    if (info == nullptr || setjmp(png_jmpbuf(png)) != 0) return false;
    png_set_read_fn(png, &bytes, take_bytes);
    png_read_info(png, info);
    png_set_expand(png);
    png_set_scale_16(png);
    png_set_gray_to_rgb(png);
    png_set_strip_alpha(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    if (png_get_rowbytes(png, info) != size_t{3} * png_get_image_width(png, info)) {
      png_error(png, "not an image of 8-bit channels");
    }
    return true;
  }
  bool read_rows(png_bytepp rows) {
    if (setjmp(png_jmpbuf(png)) != 0) return false;
    png_read_image(png, rows);
    png_read_end(png, nullptr);
    return true;
  }
};

}  // namespace

Image decode_png(std::string_view bytes, const std::string& name) {
  PngDecoder decoder(bytes);
  const auto fail = [&](const std::string& why) {
    throw UserError("'" + name + "': damaged PNG image: " + why);
  };
  if (!decoder.read_header()) fail(decoder.text);
  const int64_t height = png_get_image_height(decoder.png, decoder.info);
  const int64_t width = png_get_image_width(decoder.png, decoder.info);
  if (height * width > kMaxImagePixels) {
    fail(std::to_string(width) + " x " + std::to_string(height) + " pixels are too many");
  }
  Image image(height, width, 3);
  std::vector<png_bytep> rows;
  for (int64_t y = 0; y < height; ++y) rows.push_back(image.row(y));
  if (!decoder.read_rows(rows.data())) fail(decoder.text);
  return image;
}

}  // namespace fluid
