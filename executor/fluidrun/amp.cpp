#include "executor/fluidrun/amp.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <utility>
#include <vector>

#include "executor/device/bytes_text.h"
#include "executor/fluidrun/flags.h"
#include "executor/fluidrun/help.h"
#include "ir/error.h"
#include "ir/number.h"
#include "ops/source_kind.h"
#include "passes/amp_cast.h"

namespace fluid {

namespace {

constexpr std::string_view kDynamic = "dynamic";

std::string must_be_loss_scale(const std::string& text) {
  const bool good = text == kDynamic || validate_positive(text).empty();
  return good ? "" : "must be dynamic or a positive number, not " + text;
}

std::string must_be_growth(const std::string& text) {
  const bool good = validate_positive(text).empty() && *parse_number<double>(text) >= 1;
  return good ? "" : "must be a number of at least 1, not " + text;
}

std::string must_be_backoff(const std::string& text) {
  const bool good = validate_positive(text).empty() && *parse_number<double>(text) <= 1;
  return good ? "" : "must be above 0 and at most 1, not " + text;
}

/// Returns the first given flag that configures a dynamic loss scale, such as "--loss-scale-init";
/// "" if there is none.
std::string dynamic_scale_flag(const LossScaleFlags& flags) {
  return flags.initial    ? "--loss-scale-init"
         : flags.growth   ? "--loss-scale-growth"
         : flags.backoff  ? "--loss-scale-backoff"
         : flags.interval ? "--loss-scale-interval"
         : flags.floor    ? "--loss-scale-floor"
         : flags.ceiling  ? "--loss-scale-ceiling"
                          : "";
}

std::string first_loss_scale_flag(const LossScaleFlags& flags) {
  return flags.value.empty() ? dynamic_scale_flag(flags) : "--loss-scale";
}

LossScale loss_scale_of(const LossScaleFlags& flags) {
  LossScale scale;
  if (!flags.value.empty() && flags.value != kDynamic) {
    if (const std::string flag = dynamic_scale_flag(flags); !flag.empty()) {
      throw UserError(fmt::format("{}: the loss scale {} is constant", flag, flags.value));
    }
    scale.dynamic = false;
    scale.initial = *parse_number<double>(flags.value);
    return scale;
  }
  scale.initial = flags.initial.value_or(scale.initial);
  scale.growth = flags.growth.value_or(scale.growth);
  scale.backoff = flags.backoff.value_or(scale.backoff);
  scale.interval = flags.interval.value_or(scale.interval);
  scale.floor = flags.floor.value_or(scale.floor);
  scale.ceiling = flags.ceiling.value_or(scale.ceiling);
  return scale;
}

/// Throws UserError for --amp-dtype, --amp-f32 or --amp-half without --amp.
void reject_amp_details(const AmpFlags& flags) {
  const std::pair<const char*, const std::string&> details[] = {
      {"--amp-dtype", flags.dtype}, {"--amp-f32", flags.in_f32}, {"--amp-half", flags.in_half}};
  for (const auto& [flag, value] : details) {
    if (!value.empty()) throw UserError(std::string(flag) + " " + value + ": needs --amp o1");
  }
}

}  // namespace

void add_amp_flags(CLI::App& command, AmpFlags& flags) {
  begin_group(command, kPrecisionGroup);
  command
      .add_option("--amp", flags.level,
                  "mixed precision. o1: casts around ops that gain from half precision. o2: also "
                  "half-precision weights beside f32 master weights. auto: train and bench time "
                  "off, o1 and o2 once and select one")
      ->type_name("off|o1|o2|auto");
  command.add_option("--amp-dtype", flags.dtype, "half-precision dtype of --amp (default: bf16)")
      ->type_name("bf16|f16");
  command
      .add_option("--amp-f32", flags.in_f32,
                  "ops and layers that --amp keeps in f32, for example softmax,fc0")
      ->type_name("NAMES");
  command
      .add_option("--amp-half", flags.in_half,
                  "ops and layers that --amp computes in half precision")
      ->type_name("NAMES");
}

void add_loss_scale_flags(CLI::App& command, LossScaleFlags& flags) {
  begin_group(command, kPrecisionGroup);
  command
      .add_option("--loss-scale", flags.value,
                  "loss scale for --amp-dtype f16: dynamic or a constant (default: dynamic)")
      ->check(must_be_loss_scale)
      ->type_name("dynamic|NUMBER");
  command
      .add_option("--loss-scale-init", flags.initial,
                  "initial value of a dynamic loss scale (default: 65536)")
      ->check(validate_positive)
      ->type_name("NUMBER");
  command
      .add_option("--loss-scale-growth", flags.growth,
                  "growth factor after an interval without overflow (default: 2)")
      ->check(must_be_growth)
      ->type_name("FACTOR");
  command
      .add_option("--loss-scale-backoff", flags.backoff,
                  "backoff factor after an overflow (default: 0.5)")
      ->check(must_be_backoff)
      ->type_name("FACTOR");
  command
      .add_option("--loss-scale-interval", flags.interval,
                  "growth interval: consecutive steps without overflow (default: 2000)")
      ->check(validate_positive_integer)
      ->type_name("N");
  command
      .add_option("--loss-scale-floor", flags.floor,
                  "lower bound of a dynamic loss scale (default: 1)")
      ->check(validate_positive)
      ->type_name("NUMBER");
  command
      .add_option("--loss-scale-ceiling", flags.ceiling,
                  "upper bound of a dynamic loss scale (default: 2^24)")
      ->check(validate_positive)
      ->type_name("NUMBER");
}

bool is_amp_auto(const AmpFlags& flags) { return flags.level == "auto"; }

std::optional<AmpOptions> amp_options(const AmpFlags& flags) {
  const bool off = flags.level.empty() || flags.level == "off";
  if (off) reject_amp_details(flags);
  if (is_amp_auto(flags)) {
    throw UserError("--amp auto: train and bench time steps to choose; say o1, o2 or off here");
  }
  if (!off && flags.level != "o1" && flags.level != "o2") {
    throw UserError("--amp " + flags.level + ": must be o1, o2, auto or off");
  }
  AmpOptions amp;
  if (flags.level == "o2") amp.level = AmpLevel::o2;
  if (!flags.in_f32.empty()) amp.in_f32 = CLI::detail::split(flags.in_f32, ',');
  if (!flags.in_half.empty()) amp.in_half = CLI::detail::split(flags.in_half, ',');
  if (!flags.dtype.empty()) {
    const std::optional<DType> half = parse_dtype(flags.dtype);
    if (half != DType::bf16 && half != DType::f16) {
      throw UserError("--amp-dtype " + flags.dtype + ": must be bf16 or f16");
    }
    amp.dtype = *half;
  }
  if (const std::string flag = first_loss_scale_flag(flags.loss_scale); !flag.empty()) {
    if (off || !amp.scales_loss()) {
      throw UserError(flag + ": the loss is scaled with --amp-dtype f16 only");
    }
  }
  amp.loss_scale = loss_scale_of(flags.loss_scale);
  if (off) return std::nullopt;
  return amp;
}

namespace {

/// Bytes that an op's half-precision results save compared with f32 results.
int64_t saved_bytes(const ir::Op& op, DType half, int64_t batch) {
  int64_t bytes = 0;
  for (const ir::Result& r : op.results) {
    if (r.type.dtype == half) bytes += r.type.bytes_at(batch);
  }
  return bytes;
}

/// The op's name and the name of its first result: "matmul %y".
std::string op_text(const ir::Op& op) {
  const std::string& name = op.results.front().name;
  return op.name + (name.empty() ? "" : " %" + name);
}

}  // namespace

void print_amp_report(const ir::Program& program, const Options& options) {
  const AmpOptions amp = options.amp.value_or(AmpOptions());
  const std::unique_ptr<ir::Program> copy = program.clone();
  check_amp_names(copy->main(), amp);
  const AmpReport report = cast_for_amp(copy->main(), amp);
  const auto row = [](const std::string& op, const std::string& layer, std::string_view type,
                      const std::string& saved, const std::string& reason) {
    fmt::print("{:<22} {:<12} {:<5} {:>10}  {}\n", op, layer, type, saved, reason);
  };
  const auto size = [](int64_t bytes) { return bytes_text(static_cast<double>(bytes)); };
  row("op", "layer", "type", "smaller by", "reason");
  int64_t all_saved = 0, in_half = 0, parameter_casts = 0;
  for (const AmpReport::Choice& choice : report.ops) {
    const int64_t saved = saved_bytes(*choice.op, amp.dtype, options.batch);
    all_saved += saved;
    in_half += choice.dtype == amp.dtype ? 1 : 0;
    row(op_text(*choice.op), choice.op->scope, name_of(choice.dtype), saved > 0 ? size(saved) : "-",
        choice.reason);
  }
  for (const Value& cast : report.casts) {
    const ir::Op& from = *cast.op()->operands.front().op();
    parameter_casts += source_kind(from) == SourceKind::parameter ? 1 : 0;
  }
  fmt::print("{} of {} ops in {}, whose results take {} less with a batch of {}\n", in_half,
             report.ops.size(), name_of(amp.dtype), size(all_saved), options.batch);
  fmt::print("{} casts inserted, {} of them of parameters\n", report.casts.size(), parameter_casts);
}

}  // namespace fluid
