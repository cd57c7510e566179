#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "executor/executor.h"
#include "frontend/program.h"
#include "frontend/readers/reader.h"

namespace fluid {

struct QuantizeOptions {
  /// Patterns of weights or layers that stay f32 (NamePattern::selects()).
  std::vector<std::string> keep = {};
  /// Data from which the ranges of activations are measured. Null: only the weights of products
  /// are quantized.
  Reader* calibration = nullptr;
  int64_t calibration_batches = 16;  ///< number of batches to read from `calibration`, at least 1
};

/// A program for inference with weights of i8, and its parameters and buffers.
struct QuantizedProgram {
  Program program;
  std::vector<std::pair<std::string, Tensor>> values;  ///< name -> value, in program order
  std::vector<std::string> weights;  ///< names of the quantized weights, in program order
  int64_t bytes_before = 0;          ///< bytes of all f32 parameters and buffers
  int64_t bytes_after = 0;           ///< bytes of all `values`
};

/// Quantizes the program that `executor` runs: `program`, with the executor's parameters.
///
/// Without calibration data, the weights [in, out] of linear layers and other matrix products with
/// a parameter become i8, with one scale per output channel: the largest |w| of a channel is 127
/// times its scale. Products stay f32. Loss, optimizer and recipes are removed.
///
/// With calibration data, the weights of 2-d convolutions without groups are quantized, too, and
/// so are the activations that the convolutions and products read (Jacob et al., "Quantization and
/// training of neural networks for efficient integer-arithmetic-only inference", CVPR 2018). An
/// activation has one scale, from its smallest and largest value over the data: u8 if it is never
/// negative; u8 with a zero point if no padded convolution reads it; else i8. All ops read the
/// quantized activation. Batch norms are folded into the weights before.
///
/// The result has `quantize` and `dequantize` ops around the unchanged products and convolutions. A
/// place with kernels for 8-bit integers computes on these.
///
/// Weights of recurrent layers and embeddings stay f32. Throws UserError if nothing is left to
/// quantize, for example because the program is quantized already; if a pattern of `keep` selects
/// no weight; if a weight or an activation is not finite; and, with calibration data, for a program
/// with kLength or with caches.
QuantizedProgram quantize(Executor& executor, const Program& program,
                          const QuantizeOptions& options = {});

/// Sets the parameters and buffers of `executor`, which runs `quantized.program`.
void set_parameters(Executor& executor, const QuantizedProgram& quantized);

}  // namespace fluid
