#include "executor/fluidrun/amp_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <utility>
#include <vector>

#include "executor/fluidrun/common.h"
#include "ir/error.h"
#include "ir/number.h"

namespace fluid {
namespace {

constexpr std::string_view kDynamic = "dynamic";

std::string must_be_loss_scale(const std::string& text) {
  const bool good = text == kDynamic || must_be_positive(text).empty();
  return good ? "" : "must be dynamic or a positive number, not " + text;
}

std::string must_be_growth(const std::string& text) {
  const bool good = must_be_positive(text).empty() && *parse_number<double>(text) >= 1;
  return good ? "" : "must be a number of at least 1, not " + text;
}

std::string must_be_backoff(const std::string& text) {
  const bool good = must_be_positive(text).empty() && *parse_number<double>(text) <= 1;
  return good ? "" : "must be above 0 and at most 1, not " + text;
}

/// The first flag of a loss scale that moves; empty when none is given.
std::string moving_flag(const LossScaleFlags& flags) {
  return flags.initial    ? "--loss-scale-init"
         : flags.growth   ? "--loss-scale-growth"
         : flags.backoff  ? "--loss-scale-backoff"
         : flags.interval ? "--loss-scale-interval"
         : flags.floor    ? "--loss-scale-floor"
         : flags.ceiling  ? "--loss-scale-ceiling"
                          : "";
}

std::string first_flag(const LossScaleFlags& flags) {
  return flags.kind.empty() ? moving_flag(flags) : "--loss-scale";
}

LossScale loss_scale_of(const LossScaleFlags& flags) {
  LossScale scale;
  if (!flags.kind.empty() && flags.kind != kDynamic) {
    if (const std::string moving = moving_flag(flags); !moving.empty()) {
      throw UserError(fmt::format("{}: a loss scale of {} does not move", moving, flags.kind));
    }
    scale.dynamic = false;
    scale.initial = *parse_number<double>(flags.kind);
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

/// Throws for details of a mixed precision that is not asked for.
void refuse_details(const AmpFlags& flags) {
  const std::pair<const char*, const std::string&> details[] = {
      {"--amp-dtype", flags.dtype}, {"--amp-f32", flags.f32}, {"--amp-half", flags.half}};
  for (const auto& [flag, value] : details) {
    if (!value.empty()) throw UserError(std::string(flag) + " " + value + ": needs --amp o1");
  }
}

}  // namespace

void add_amp_flags(CLI::App& command, AmpFlags& flags) {
  command.add_option("--amp", flags.level,
                     "o1: mixed precision, casts around ops that gain from half precision; o2: "
                     "besides, parameters are kept in half and in f32; auto: whichever of off, o1 "
                     "and o2 takes least time or memory here, which train and bench measure once");
  command.add_option("--amp-dtype", flags.dtype,
                     "half precision of --amp: bf16, the default, or f16");
  command.add_option("--amp-f32", flags.f32,
                     "ops and layers that --amp leaves in f32: softmax,fc0");
  command.add_option("--amp-half", flags.half, "ops and layers that --amp runs in half");
}

void add_loss_scale_flags(CLI::App& command, LossScaleFlags& flags) {
  command
      .add_option("--loss-scale", flags.kind,
                  "of --amp-dtype f16: dynamic, the default, or a number that it stays at")
      ->check(must_be_loss_scale);
  command.add_option("--loss-scale-init", flags.initial, "where it begins; 65536 if not said")
      ->check(must_be_positive);
  command
      .add_option("--loss-scale-growth", flags.growth,
                  "its factor after steps without overflow; 2 if not said")
      ->check(must_be_growth);
  command
      .add_option("--loss-scale-backoff", flags.backoff,
                  "its factor after an overflow; 0.5 if not said")
      ->check(must_be_backoff);
  command
      .add_option("--loss-scale-interval", flags.interval,
                  "steps in a row without overflow until it grows; 2000 if not said")
      ->check(must_be_count);
  command.add_option("--loss-scale-floor", flags.floor, "it never falls below; 1 if not said")
      ->check(must_be_positive);
  command
      .add_option("--loss-scale-ceiling", flags.ceiling, "it never grows above; 2^24 if not said")
      ->check(must_be_positive);
}

bool is_automatic(const AmpFlags& flags) { return flags.level == "auto"; }

std::optional<AmpOptions> amp_of(const AmpFlags& flags) {
  const bool off = flags.level.empty() || flags.level == "off";
  if (off) refuse_details(flags);
  if (is_automatic(flags)) {
    throw UserError("--amp auto: train and bench time steps to choose; say o1, o2 or off here");
  }
  if (!off && flags.level != "o1" && flags.level != "o2") {
    throw UserError("--amp " + flags.level + ": must be o1, o2, auto or off");
  }
  AmpOptions amp;
  if (flags.level == "o2") amp.level = AmpLevel::o2;
  if (!flags.f32.empty()) amp.in_f32 = CLI::detail::split(flags.f32, ',');
  if (!flags.half.empty()) amp.in_half = CLI::detail::split(flags.half, ',');
  if (!flags.dtype.empty()) {
    const std::optional<DType> half = dtype_named(flags.dtype);
    if (half != DType::bf16 && half != DType::f16) {
      throw UserError("--amp-dtype " + flags.dtype + ": must be bf16 or f16");
    }
    amp.dtype = *half;
  }
  if (const std::string flag = first_flag(flags.loss_scale); !flag.empty()) {
    if (off || !amp.scales_loss()) {
      throw UserError(flag + ": the loss is scaled with --amp-dtype f16 only");
    }
  }
  amp.loss_scale = loss_scale_of(flags.loss_scale);
  if (off) return std::nullopt;
  return amp;
}

}  // namespace fluid
