#include <jerror.h>
#include <jpeglib.h>

#include <csetjmp>
#include <cstdio>

#include "frontend/images/decode.h"
#include "ir/error.h"

namespace fluid {
namespace {

/// A libjpeg error manager whose handler jump_out() writes the message to `text`, then does a
/// longjmp to `jump`.
struct JpegErrors {
  jpeg_error_mgr base;
  std::jmp_buf jump;
  char text[JMSG_LENGTH_MAX];
};

[[noreturn]] void jump_out(j_common_ptr info) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  (*errors->base.format_message)(info, errors->text);
  std::longjmp(errors->jump, 1);
}

/// A libjpeg emit_message handler that turns warnings about damaged data into errors. By default,
/// libjpeg would only warn and fill the damaged area with gray.
void reject_damage(j_common_ptr info, int level) {
  if (level >= 0) return;
  const int code = info->err->msg_code;
  if (code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE || code == JWRN_JPEG_EOF ||
      code == JWRN_MUST_RESYNC) {
    jump_out(info);
  }
}

/// A JPEG decompressor. All members are trivially destructible, because the longjmp of the error
/// handler runs no destructors.
struct Decompressor {
  jpeg_decompress_struct info;
  JpegErrors errors;

  Decompressor() {
    info.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = jump_out;
    errors.base.emit_message = reject_damage;
    errors.text[0] = '\0';
    jpeg_create_decompress(&info);
  }
  ~Decompressor() { jpeg_destroy_decompress(&info); }
  Decompressor(const Decompressor&) = delete;

  /// Reads the header. Returns whether it succeeded.
  bool read_header(std::string_view bytes) {
    if (setjmp(errors.jump) != 0) return false;
    jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_read_header(&info, TRUE);
    const bool cmyk = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
    info.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
    return true;
  }

  /// Decodes all rows to `pixels`. A row has `row_bytes` bytes. Returns whether it succeeded.
  bool read_rows(uint8_t* pixels, int64_t row_bytes) {
    if (setjmp(errors.jump) != 0) return false;
    jpeg_start_decompress(&info);
    while (info.output_scanline < info.output_height) {
      JSAMPROW rows[8];
      for (int i = 0; i < 8; ++i) {
        rows[i] = pixels + (static_cast<int64_t>(info.output_scanline) + i) * row_bytes;
      }
      const JDIMENSION left = info.output_height - info.output_scanline;
      jpeg_read_scanlines(&info, rows, left < 8 ? left : 8);
    }
    jpeg_finish_decompress(&info);
    return true;
  }
};

/// Converts CMYK to RGB. `inverted`: whether 255 means no ink, as in files with an Adobe marker.
Image rgb_of_cmyk(const Image& cmyk, bool inverted) {
  Image rgb(cmyk.height, cmyk.width, 3);
  const uint8_t* from = cmyk.pixels.data();
  uint8_t* to = rgb.pixels.data();
  for (int64_t i = 0; i < cmyk.height * cmyk.width; ++i, from += 4, to += 3) {
    const int black = inverted ? from[3] : 255 - from[3];
    for (int c = 0; c < 3; ++c) {
      const int product = (inverted ? 255 - from[c] : from[c]) * black + 128;
      to[c] = static_cast<uint8_t>(black - ((product + (product >> 8)) >> 8));
    }
  }
  return rgb;
}

}  // namespace

Image decode_jpeg(std::string_view bytes, const std::string& name) {
  Decompressor jpeg;
  const auto fail = [&](const std::string& why) {
    throw UserError("'" + name + "': damaged JPEG image: " + why);
  };
  if (!jpeg.read_header(bytes)) fail(jpeg.errors.text);
  const int64_t height = jpeg.info.image_height, width = jpeg.info.image_width;
  if (height * width > kMaxImagePixels) {
    fail(std::to_string(width) + " x " + std::to_string(height) + " pixels are too many");
  }
  const bool cmyk = jpeg.info.out_color_space == JCS_CMYK;
  Image image(height, width, cmyk ? 4 : 3);
  if (!jpeg.read_rows(image.pixels.data(), width * image.channels)) {
    fail(jpeg.errors.text);
  }
  return cmyk ? rgb_of_cmyk(image, jpeg.info.saw_Adobe_marker != 0) : image;
}

}  // namespace fluid
