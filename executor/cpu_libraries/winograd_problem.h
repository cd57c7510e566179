#pragma once

// Convolutions that Winograd's algorithm can compute.

#include <optional>

#include "executor/cpu_libraries/convolution_task.h"
#include "executor/cpu_libraries/winograd_tiles.h"

namespace fluid {

/// Table entry: the name of a library kernel, and the direction of its convolution.
struct WinogradKernelEntry {
  std::string_view kernel;
  ConvDirection direction;
  bool may_span_images = true;  ///< whether a tile may contain pixels of several images
};

/// The shapes of a Winograd convolution. The convolution reads source images and writes result
/// images. The input gradient is a convolution that reads dy and writes dx. The filter gradient
/// reads x and dy, and writes dw.
struct WinogradProblem {
  ConvDirection direction;
  WinogradVariant variant;
  int64_t images;
  WinogradAxis y, x;
  WinogradFilter filter;
  bool bias, relu;

  WinogradTiles tiles(bool may_span_images) const {
    return {images, y, x, variant.input_tile(), may_span_images};
  }
};

/// Returns the convolution of `op` followed by `epilogue` as `entry` computes it; nullopt if it
/// cannot.
std::optional<WinogradProblem> winograd_problem(const WinogradKernelEntry& entry, const ir::Op& op,
                                                const EpilogueOps& epilogue, int64_t batch);

}  // namespace fluid
