#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "passes/options.h"

namespace CLI {
class App;
}

namespace fluid {

/// Names and defaults are those of PyTorch's GradScaler, but for floor and ceiling.
struct LossScaleFlags {
  std::string kind;  ///< "dynamic", a number, which it stays at, or empty: dynamic
  std::optional<double> initial = {}, growth = {}, backoff = {}, floor = {}, ceiling = {};
  std::optional<int64_t> interval = {};
};

/// Mixed precision on the command line.
struct AmpFlags {
  std::string level;  ///< "o1", "o2", "auto"; "off" or empty: none
  std::string dtype;  ///< "bf16", "f16", or empty: bf16
  std::string f32;    ///< ops and layers, separated by commas
  std::string half;   ///< likewise
  LossScaleFlags loss_scale;
};
void add_amp_flags(CLI::App& command, AmpFlags& flags);
/// Those of the loss scale, for commands that train.
void add_loss_scale_flags(CLI::App& command, LossScaleFlags& flags);

/// Whether steps in f32 and in mixed precision are timed to choose.
bool is_automatic(const AmpFlags& flags);
/// Throws UserError for an unknown level or dtype, for flags that do not go together, and for
/// "auto".
std::optional<AmpOptions> amp_of(const AmpFlags& flags);

}  // namespace fluid
