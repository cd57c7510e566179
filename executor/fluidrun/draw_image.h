#pragma once

#include <cstdint>

#include "ir/tensor.h"

namespace fluid {

/// Whether the samples of `t` are images: the last two dimensions are height and width.
bool is_image(const Tensor& t);

/// Prints the first channel of a sample's image with block characters. Each line of text shows two
/// rows of pixels. Wide images are subsampled.
void draw_image(const Tensor& images, int64_t sample);

}  // namespace fluid
