#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/checkpoint/checkpoint.h"
#include "frontend/program.h"

namespace CLI {
class App;
}

namespace fluid {

struct BestFlags {
  std::string output;  ///< "accuracy:max"; empty: the loss, min
  std::optional<int64_t> patience = {};
  std::string save;
};
void add_best_flags(CLI::App& command, BestFlags& flags);

/// Which epoch has been the best by a figure of the validation data, and whether that is too long
/// ago.
class BestEpoch {
 public:
  /// `loss`: the output that training minimizes, or empty. Throws UserError for flags that do not
  /// go together, and for an output that is no figure.
  BestEpoch(const BestFlags& flags, const Program& program, const std::string& loss,
            bool validates);

  /// Takes the figures of a whole epoch, "val_loss" and so on: whether it is the best until now.
  bool take(int64_t epoch, const std::vector<std::pair<std::string, double>>& figures);
  /// Whether the last `patience` of the epochs done brought nothing better.
  bool patience_ends(int64_t epochs) const;
  /// "val_loss 0.1234 in epoch 3"; empty while there is none.
  std::string text() const;
  /// "accuracy:max", as an option that changes results; empty when no epoch is the best.
  std::string criterion() const;

  const std::optional<TrainingState::Best>& best() const { return best_; }
  void go_on(const std::optional<TrainingState::Best>& best) { best_ = best; }

 private:
  std::string output_;  ///< empty: none is watched
  bool max_ = false;
  std::optional<int64_t> patience_;
  std::optional<TrainingState::Best> best_;
};

}  // namespace fluid
