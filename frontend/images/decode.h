#pragma once

#include <string>
#include <string_view>

#include "frontend/images/image.h"

namespace fluid {

/// Maximum number of pixels of an image. Limits the memory that a damaged header can request.
inline constexpr int64_t kMaxImagePixels = int64_t{1} << 28;

/// Decodes a JPEG or PNG image to 8-bit RGB, as PIL's Image.convert("RGB") does: gray and palette
/// images are expanded, alpha is dropped, CMYK is converted without a colour profile. The EXIF
/// orientation is not applied. `name` names the image in messages. Throws UserError for another
/// format, a damaged or truncated image, or an image of more than kMaxImagePixels pixels.
Image decode_image(std::string_view bytes, const std::string& name);

/// Returns whether `path` ends with an extension of a format that decode_image() reads: .jpg,
/// .jpeg or .png, in upper or lower case.
bool is_image_path(std::string_view path);
/// Returns whether `path` ends with the extension of a common image format that decode_image()
/// rejects, such as .webp.
bool is_unsupported_image_path(std::string_view path);

// Like decode_image(), for one format.
Image decode_jpeg(std::string_view bytes, const std::string& name);
Image decode_png(std::string_view bytes, const std::string& name);

}  // namespace fluid
