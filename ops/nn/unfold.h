#pragma once

#include "ops/nn/window.h"

namespace fluid {

/// Definitions of the attributes of the window: kernel, stride, padding, dilation.
std::vector<AttrDef> unfold_attrs();

/// The window of unfold: one axis along the height, then one along the width.
WindowAxes window_of_unfold(const Attrs& attrs);

/// The shape of unfold's result for an input of shape [N, C, H, W]: [N, C * KH * KW, windows].
Shape unfolded_shape(const InferCtx& c, const Shape& x);

}  // namespace fluid
