#include "executor/options/precision.h"

#include <fmt/format.h>

namespace fluid {
namespace {

constexpr std::string_view kO2 = "o2 ";

}  // namespace

std::string amp_text(const std::optional<AmpOptions>& amp) {
  if (!amp) return "off";
  const LossScale& s = amp->loss_scale;
  std::string text = fmt::format("{}{}", amp->has_half_weights() ? kO2 : "", name_of(amp->dtype));
  for (const std::string& name : amp->in_f32) text += fmt::format(", {} in f32", name);
  for (const std::string& name : amp->in_half) text += fmt::format(", {} in half", name);
  if (!amp->scales_loss()) return text;
  if (!s.dynamic) return fmt::format("{} with a loss scale of {}", text, s.initial);
  return fmt::format("{} with a loss scale from {} x {} / {} every {} in [{}, {}]", text, s.initial,
                     s.growth, s.backoff, s.interval, s.floor, s.ceiling);
}

Precision parse_precision(std::string_view amp_text) {
  if (amp_text == "off") return Precision::f32;
  return amp_text.starts_with(kO2) ? Precision::o2 : Precision::o1;
}

}  // namespace fluid
