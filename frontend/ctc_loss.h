#pragma once

#include <string>

#include "ir/graph.h"

namespace fluid {

struct CtcLoss {
  int64_t blank = 0;  ///< index of the blank class
  /// "none": one loss per sample, [N]. "mean": divides each loss by its target length, then
  /// averages over the samples. "sum": sum over the samples.
  std::string reduction = "mean";
  bool zero_infinity = false;  ///< whether infinite losses are replaced by 0
};

/// Connectionist temporal classification loss (Graves et al., "Connectionist temporal
/// classification", ICML 2006), like torch.nn.functional.ctc_loss. The loss is minus the log of the
/// total probability of all alignments of a target with an input. log_probs: float [N, T, C],
/// log-probabilities of the classes, including the blank. targets: integers [N, S] without blanks.
/// input_lengths and target_lengths: integers [N]; elements past a length are ignored. A step with
/// a label, or a length, that is out of range raises an error and changes nothing. If a target is
/// too long for the input and thus has no alignment, its loss is infinite and its gradient 0.
/// Throws UserError for other ranks and dtypes.
Value ctc_loss(Value log_probs, Value targets, Value input_lengths, Value target_lengths,
               const CtcLoss& options = {}, const Loc& loc = Loc::here());

}  // namespace fluid
