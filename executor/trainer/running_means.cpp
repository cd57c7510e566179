#include "executor/trainer/running_means.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "executor/comm/process_group.h"

namespace fluid {

void RunningMeans::add(const OutputViews& outputs, int64_t samples) {
  outputs.for_each_scalar([&](const OutputView& o) {
    auto sum = std::ranges::find(sums_, o.name, &OutputSum::name);
    if (sum == sums_.end()) sum = sums_.insert(sums_.end(), {o.name});
    const auto weight = static_cast<double>(samples);
    sum->sum += o.metric ? o.sum : weight * o.value.item();
    sum->weight += o.metric ? o.weight : weight;
  });
}

void RunningMeans::add_deferred(const OutputViews& outputs, int64_t samples) {
  flush();
  deferred_.emplace(outputs, samples);
}

void RunningMeans::flush() {
  if (deferred_) add(deferred_->first, deferred_->second);
  deferred_.reset();
}

void RunningMeans::all_reduce(ProcessGroup& group, const std::vector<std::string>& names) {
  std::vector<double> all;
  for (const std::string& name : names) {
    const auto sum = std::ranges::find(sums_, name, &OutputSum::name);
    const bool known = sum != sums_.end();
    all.insert(all.end(), {known ? sum->sum : 0, known ? sum->weight : 0});
  }
  group.all_reduce(all);
  sums_.clear();
  for (size_t i = 0; i < names.size(); ++i) {
    if (all[2 * i + 1] > 0) sums_.push_back({names[i], all[2 * i], all[2 * i + 1]});
  }
}

NamedScalars RunningMeans::values() const {
  NamedScalars values;
  for (const OutputSum& s : sums_) values.emplace_back(s.name, s.sum / s.weight);
  return values;
}

std::string RunningMeans::text() const {
  std::string text;
  for (const auto& [name, value] : values()) {
    text += fmt::format("{}{} {}", text.empty() ? "" : "  ", name, format_scalar(value));
  }
  return text;
}

double clear_nan_sign(double value) { return std::isnan(value) ? std::abs(value) : value; }

std::string format_scalar(double value) {
  if (std::isnan(value)) return "nan";
  const double size = std::abs(value);
  const bool plain = size == 0 || (size >= 1e-3 && size < 1e5) || std::isinf(value);
  return plain ? fmt::format("{:.4f}", value) : fmt::format("{:.3e}", value);
}

NamedScalars scalar_outputs(const OutputViews& outputs) {
  NamedScalars values;
  outputs.for_each_scalar(
      [&](const OutputView& o) { values.emplace_back(o.name, o.value.item()); });
  return values;
}

}  // namespace fluid
