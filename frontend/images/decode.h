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

/// Returns whether `path` ends with the extension of an image, in upper or lower case: .jpg, .jpeg
/// or .png, or that of a format which decode_image() rejects, such as .webp. Readers must not
/// ignore such a file, so that the user learns why a sample is missing.
bool is_image_path(std::string_view path);

// Like decode_image(), for one format.
Image decode_jpeg(std::string_view bytes, const std::string& name);
Image decode_png(std::string_view bytes, const std::string& name);

}  // namespace fluid
