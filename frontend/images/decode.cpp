#include "frontend/images/decode.h"

#include <algorithm>
#include <array>

#include "ir/error.h"
#include "ir/text.h"

namespace fluid {

Image decode_image(std::string_view bytes, const std::string& name) {
  if (bytes.starts_with("\xff\xd8")) return decode_jpeg(bytes, name);
  if (bytes.starts_with("\x89PNG")) return decode_png(bytes, name);
  throw UserError("'" + name + "': neither a JPEG nor a PNG image");
}

bool is_image_path(std::string_view path) {
  static constexpr std::array kExtensions = {".jpg", ".jpeg", ".png", ".bmp",  ".gif",
                                             ".pgm", ".ppm",  ".tif", ".tiff", ".webp"};
  const std::string lower = ir::lowercase(path);
  return std::ranges::any_of(kExtensions, [&](const char* e) { return lower.ends_with(e); });
}

}  // namespace fluid
