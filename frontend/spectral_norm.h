#pragma once

#include <string>

#include "ir/graph.h"

namespace fluid {

/// Options of spectral_norm().
struct SpectralNorm {
  int64_t dim = 0;         ///< weight dimension that indexes the rows of W; negative: from the end
  int64_t iterations = 1;  ///< iterations of the power method per training step
  double eps = 1e-12;      ///< smallest norm by which the power method divides
  std::string name = {};   ///< scope of the states; by default spectral_norm0, spectral_norm1...
};

/// Spectral normalisation (Miyato et al., "Spectral normalization for generative adversarial
/// networks", ICLR 2018), like torch.nn.utils.parametrizations.spectral_norm. Returns weight /
/// sigma, where sigma = u^T W v is an estimate of the largest singular value. W is the weight as a
/// matrix, whose rows run over dimension `dim`. Pass the result as the weight of a layer:
///
///   auto w = net.parameter("w", {16, 3, 3, 3}, fl::Init::kaiming_uniform());
///   auto y = fl::conv2d(x, {.filters = 16, .kernel = 3, .weight = fl::spectral_norm(w)});
///
/// Adds the buffers spectral_norm0.u and spectral_norm0.v, which are saved with the parameters. u
/// and v are initialised with normal random numbers. A training step, or each of its micro-batches,
/// updates u and v by `iterations` power iterations. Eval and predict steps do not update u and
/// v. The gradient treats u and v as constants. PyTorch runs 15 iterations when it creates the
/// layer. Fluid runs none, so sigma is a poor estimate in the first training steps.
///
/// Throws UserError if the weight has a symbolic extent, fewer than two dimensions or an integer
/// dtype. Also throws UserError if `dim` or `iterations` is out of range.
Value spectral_norm(Value weight, const SpectralNorm& options = {}, const Loc& loc = Loc::here());

}  // namespace fluid
