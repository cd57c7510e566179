#pragma once

#include <string>

#include "frontend/images/image.h"

namespace fluid {

/// Encodes an image with 1 (gray), 3 (RGB) or 4 (RGBA) channels as PNG. Throws UserError for an
/// image without pixels or with another number of channels.
std::string encode_png(const Image& image);

}  // namespace fluid
