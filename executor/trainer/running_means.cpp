#include "executor/trainer/running_means.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>

#include "executor/comm/process_group.h"
#include "ops/source/kept_gradient.h"
#include "passes/metrics.h"

namespace fluid {

namespace {

/// Returns the metric op of output `name`; null if the output is not a metric.
const ir::Op* metric_op(const ir::Program& program, const std::string& name) {
  for (const ir::Output& o : program.main().outputs) {
    if (o.name == name && is_metric(o.value)) return o.value.op();
  }
  return nullptr;
}

/// Whether output `name` has one row per sample. Such an output is not a scalar, even in a batch of
/// one sample.
bool is_per_sample(const ir::Program& program, const std::string& name) {
  return std::ranges::any_of(program.main().outputs, [&](const ir::Output& o) {
    return o.name == name && !is_metric(o.value) && o.value.shape().has_batch();
  });
}

bool has_rows(const ir::Op* metric) { return metric && metric->results[0].type.shape.has_batch(); }

/// Collective. Concatenates the elements of all ranks, in rank order.
std::vector<double> concat_over_ranks(ProcessGroup& group, const std::vector<double>& own) {
  const auto [rank, size] = std::pair(group.world().rank, group.world().size);
  std::vector<double> counts(static_cast<size_t>(size));
  counts[static_cast<size_t>(rank)] = static_cast<double>(own.size());
  group.all_reduce(counts);
  const auto end = counts.begin() + rank;
  std::vector<double> all(static_cast<size_t>(std::accumulate(counts.begin(), counts.end(), 0.0)));
  std::ranges::copy(own,
                    all.begin() + static_cast<int64_t>(std::accumulate(counts.begin(), end, 0.0)));
  group.all_reduce(all);
  return all;
}

}  // namespace

std::vector<double>& RunningMeans::statistics_of(const std::string& output) {
  const auto known = std::ranges::find(statistics_, output, &OutputStatistics::name);
  if (known != statistics_.end()) return known->statistics;
  return statistics_.emplace_back(OutputStatistics{output, {}}).statistics;
}

void RunningMeans::add(const OutputViews& outputs, int64_t samples) {
  outputs.for_each_scalar([&](const OutputView& o) {
    if (o.name.starts_with(kDumpPrefix) || is_per_sample(*program_, o.name)) return;
    std::vector<double>& total = statistics_of(o.name);
    const auto weight = static_cast<double>(samples);
    std::vector<double> mean;
    if (!o.metric) mean = {weight * o.value.item(), weight};
    const std::span<const double> added = o.metric ? o.statistics.as<double>() : mean;
    if (has_rows(o.metric)) {
      total.insert(total.end(), added.begin(), added.end());
    } else {
      total.resize(added.size());
      std::ranges::transform(total, added, total.begin(), std::plus());
    }
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

void RunningMeans::all_reduce(ProcessGroup& group) {
  std::vector<OutputStatistics> all;
  for (const ir::Output& o : program_->main().outputs) {
    const ir::Op* metric = metric_op(*program_, o.name);
    std::vector<double>& own = statistics_of(o.name);
    if (has_rows(metric)) {
      own = concat_over_ranks(group, own);
    } else {
      // A rank without samples has no statistics: it contributes zeros.
      own.resize(metric ? static_cast<size_t>(metric->results[0].type.shape.numel().size) : 2);
      group.all_reduce(own);
    }
    // Omit an output that no rank has computed: all its statistics are 0.
    if (std::ranges::any_of(own, [](double x) { return x != 0; }))
      all.push_back({o.name, std::move(own)});
  }
  statistics_ = std::move(all);
}

NamedScalars RunningMeans::values() const {
  NamedScalars values;
  for (const auto& [name, statistics] : statistics_) {
    const ir::Op* metric = metric_op(*program_, name);
    values.emplace_back(name,
                        metric ? metric_value(*metric, statistics) : statistics[0] / statistics[1]);
  }
  return values;
}

std::vector<TrainingState::OutputStatistics> RunningMeans::gathered_statistics(
    ProcessGroup& group) const {
  RunningMeans all(*program_);
  all.statistics_ = statistics_;
  for (const ir::Output& o : program_->main().outputs) {
    if (!has_rows(metric_op(*program_, o.name))) continue;
    std::vector<double>& rows = all.statistics_of(o.name);
    rows = concat_over_ranks(group, rows);
  }
  return std::move(all.statistics_);
}

void RunningMeans::restore(std::vector<OutputStatistics> statistics, int rank) {
  statistics_ = std::move(statistics);
  if (rank == 0) return;
  std::erase_if(statistics_,
                [&](const OutputStatistics& s) { return has_rows(metric_op(*program_, s.name)); });
}

NamedScalars RunningMeans::values_with_gathered_rows(ProcessGroup& group) const {
  RunningMeans all(*program_);
  all.statistics_ = gathered_statistics(group);
  return all.values();
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
