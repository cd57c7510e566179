#pragma once

#include <cstddef>
#include <string>

#include "ir/tensor.h"

namespace fluid {

/// A weight in 8-bit integers: weight = integers * scale, with the scale of the index along one
/// axis.
struct Int8Weight {
  Tensor integers;  ///< i8, within [-127, 127]
  Tensor scale;     ///< f32, one element per index along the axis; positive
};

/// Quantizes an f32 tensor symmetrically, with one scale per index along `axis`. `name` names the
/// weight in messages. Throws UserError if an element is not finite.
Int8Weight quantize_weight(const Tensor& weight, size_t axis, const std::string& name);

}  // namespace fluid
