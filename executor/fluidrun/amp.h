#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ir/graph.h"
#include "passes/options.h"

namespace CLI {
class App;
}

namespace fluid {

/// Names and defaults follow PyTorch's GradScaler; floor and ceiling are bounds of the scale.
struct LossScaleFlags {
  std::string kind;  ///< "dynamic", a constant number, or empty: dynamic
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
/// Adds the options of the loss scale, for subcommands that train.
void add_loss_scale_flags(CLI::App& command, LossScaleFlags& flags);

/// Whether --amp is auto.
bool is_automatic(const AmpFlags& flags);
/// The options of amp_cast; absent for "off". Throws UserError for an unknown level or dtype, for
/// flags that exclude each other, and for "auto".
std::optional<AmpOptions> amp_of(const AmpFlags& flags);

/// Prints the dtype that amp_cast gives each op and the reason, then the number of casts and the
/// bytes that half-precision results save at `options.batch`. `program` is the input of amp_cast.
/// Without `options.amp` the level is o1.
void print_amp_report(const ir::Program& program, const Options& options);

}  // namespace fluid
