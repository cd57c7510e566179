#pragma once

#include <string>

#include "frontend/images/image.h"

namespace fluid {

/// Returns a PNG file of an image of 1 (grey), 3 (RGB) or 4 (RGBA) channels. Throws UserError for
/// an image without pixels, and for other channels.
std::string encode_png(const Image& image);

}  // namespace fluid
