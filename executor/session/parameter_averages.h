#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "executor/session/session.h"

namespace fluid {

/// Replaces the parameters of a session by their averages over training (MinimizeOptions::ema,
/// swa), and restores them.
class ParameterAverages {
 public:
  explicit ParameterAverages(Session& session) : session_(session) {}

  /// If `in_use` is true, copies the parameters to the host and sets them to their averages. Before
  /// the first update, a parameter is its own average. If several recipes average a parameter, the
  /// first recipe's average is used. If `in_use` is false, restores the parameters from the host
  /// copies. Throws UserError if the recipe keeps no averages, or if no training step is prepared.
  void set_in_use(bool in_use);
  bool in_use() const { return in_use_; }
  /// Throws UserError if the averages are in use. The message begins with `call`.
  void require_not_in_use(std::string_view call) const;

 private:
  Session& session_;
  bool in_use_ = false;
  std::vector<std::pair<std::string, Tensor>> parameters_;  ///< the replaced parameters
};

}  // namespace fluid
