#include "frontend/images/decode.h"

#include <algorithm>
#include <initializer_list>

#include "ir/error.h"
#include "ir/text.h"

namespace fluid {
namespace {

/// Whether `path` ends with one of `extensions`, in upper or lower case.
bool has_extension(std::string_view path, std::initializer_list<const char*> extensions) {
  const std::string lower = ir::lowercase(path);
  return std::ranges::any_of(extensions, [&](const char* e) { return lower.ends_with(e); });
}

}  // namespace

Image decode_image(std::string_view bytes, const std::string& name) {
  if (bytes.starts_with("\xff\xd8")) return decode_jpeg(bytes, name);
  if (bytes.starts_with("\x89PNG")) return decode_png(bytes, name);
  throw UserError("'" + name + "': neither a JPEG nor a PNG image");
}

bool is_image_path(std::string_view path) { return has_extension(path, {".jpg", ".jpeg", ".png"}); }

bool is_unsupported_image_path(std::string_view path) {
  return has_extension(path, {".bmp", ".gif", ".pgm", ".ppm", ".tif", ".tiff", ".webp"});
}

}  // namespace fluid
