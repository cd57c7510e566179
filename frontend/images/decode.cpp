#include "frontend/images/decode.h"

#include "ir/error.h"
#include "ir/text.h"

namespace fluid {

Image decode_image(std::string_view bytes, const std::string& name) {
  if (bytes.starts_with("\xff\xd8")) return decode_jpeg(bytes, name);
  if (bytes.starts_with("\x89PNG")) return decode_png(bytes, name);
  throw UserError("'" + name + "': neither a JPEG nor a PNG image");
}

bool is_image_path(std::string_view path) {
  const std::string lower = ir::lowercase(path);
  return lower.ends_with(".jpg") || lower.ends_with(".jpeg") || lower.ends_with(".png");
}

}  // namespace fluid
