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

/// The --loss-scale flags. The names and defaults follow PyTorch's GradScaler. `floor` and
/// `ceiling` bound the scale.
struct LossScaleFlags {
  std::string value;  ///< --loss-scale: "dynamic" or a constant scale; empty: dynamic
  std::optional<double> initial = {}, growth = {}, backoff = {}, floor = {}, ceiling = {};
  std::optional<int64_t> interval = {};
};

/// The --amp flags of mixed precision.
struct AmpFlags {
  std::string level;    ///< AMP level: "o1", "o2" or "auto"; "off" or empty: no mixed precision
  std::string dtype;    ///< half-precision dtype: "bf16" or "f16"; empty: bf16
  std::string in_f32;   ///< comma-separated names of ops and layers to keep in f32
  std::string in_half;  ///< comma-separated names of ops and layers to compute in half precision
  LossScaleFlags loss_scale;
};
void add_amp_flags(CLI::App& command, AmpFlags& flags);
/// Adds the loss-scale flags to a subcommand that trains.
void add_loss_scale_flags(CLI::App& command, LossScaleFlags& flags);

/// Whether the flags contain --amp auto.
bool is_amp_auto(const AmpFlags& flags);
/// The mixed-precision options that the flags select; nullopt for --amp off. Throws UserError for
/// an unknown level or dtype, for mutually exclusive flags, and for --amp auto.
std::optional<AmpOptions> amp_options(const AmpFlags& flags);

/// Prints the dtype that the amp_cast pass gives each op, and the reason. Then prints the number of
/// casts, and the bytes that half-precision results save for `options.batch` samples. `program`:
/// the input of the pass. Uses level o1 if `options.amp` is nullopt.
void print_amp_report(const ir::Program& program, const Options& options);

}  // namespace fluid
