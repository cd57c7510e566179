#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "executor/profile/profile.h"

namespace fluid {
namespace {

constexpr size_t kMaxRows = 40;  // maximum number of rows of a table

/// A table row: sums over the calls of a step that have the same key, such as the layer.
struct Row {
  std::string key;
  double ms = 0, calls = 0, flops = 0, bytes = 0;
  double flops_ms = 0;      ///< time that `flops` would take at the peak FLOP/s, in ms
  double predicted_ms = 0;  ///< predicted time of the calls that have a prediction
  double measured_ms = 0;   ///< measured time of the calls that have a prediction
  bool predicted = false;

  void operator+=(const Row& other) {
    ms += other.ms;
    calls += other.calls;
    flops += other.flops;
    bytes += other.bytes;
    flops_ms += other.flops_ms;
    predicted_ms += other.predicted_ms;
    measured_ms += other.measured_ms;
    predicted |= other.predicted;
  }
};

/// Mean time of a step by phase, in ms.
struct StepBreakdown {
  double step = 0, feeds = 0, waits = 0, calls = 0;
  double between_calls() const { return step - feeds - waits - calls; }
};

/// Returns the faster half of the steps.
std::vector<const StepTimes*> faster_half(const std::vector<StepTimes>& times) {
  std::vector<const StepTimes*> steps;
  for (const StepTimes& t : times) steps.push_back(&t);
  std::ranges::sort(steps, {}, [](const StepTimes* t) { return t->step.ns(); });
  steps.resize((steps.size() + 1) / 2);
  return steps;
}

using CallKey = std::function<std::string(const CallInfo&)>;

class Table {
 public:
  Table(const ProfiledStep& step, const PeakRates& rates)
      : step_(step), rates_(rates), steps_(faster_half(step.times)) {
    for (const StepTimes* t : steps_) {
      breakdown_.step += mean_ms(t->step);
      for (const RunTimes& run : t->runs) {
        breakdown_.feeds += mean_ms(run.feeds);
        breakdown_.waits += mean_ms(run.final_wait);
        for (const CallTimes& c : run.calls) {
          breakdown_.waits += mean_ms(c.wait);
          breakdown_.calls += mean_ms(c.call);
        }
      }
    }
  }

  std::string text(int64_t warm_up) {
    text_ = fmt::format("{}: {:.3f} ms (mean of the faster {} of {} steps, after {} unrecorded)\n",
                        step_.name(), breakdown_.step, steps_.size(), step_.times.size(), warm_up);
    header("role      kernel                       layer            ops");
    const auto call = [](const CallInfo& c) {
      return fmt::format("{:<9} {:<28} {:<16} {}{}", ir::name_of(c.role), c.kernel, c.layer, c.ops,
                         c.line.empty() || c.line == c.layer ? "" : ", " + c.line);
    };
    add_rows(call, kMaxRows);
    for (const auto& [what, ms] : {std::pair{"feeds: copied in", breakdown_.feeds},
                                   {"waiting for other processes", breakdown_.waits},
                                   {"between calls", breakdown_.between_calls()}}) {
      if (ms > 0) add({.key = what, .ms = ms});
    }
    add_total();
    add_collective_row();
    add_gap_between_steps();
    add_sums("layer", [](const CallInfo& c) { return c.layer; });
    add_sums("kernel", [](const CallInfo& c) { return c.kernel; });
    add_sums("role", [](const CallInfo& c) { return std::string(ir::name_of(c.role)); });
    return std::move(text_);
  }

 private:
  double mean_ms(const TimeSpan& span) const {
    return static_cast<double>(span.ns()) / 1e6 / static_cast<double>(steps_.size());
  }

  /// Sums the calls that have the same key. Returns the rows in descending order of time.
  std::vector<Row> rows(const CallKey& key) const {
    std::vector<Row> rows;
    for (size_t r = 0; r < step_.runs.size(); ++r) {
      for (size_t c = 0; c < step_.runs[r].size(); ++c) {
        Row row = row_of(step_.runs[r][c], r, c);
        row.key = key(step_.runs[r][c]);
        const auto same = std::ranges::find(rows, row.key, &Row::key);
        if (same == rows.end()) {
          rows.push_back(std::move(row));
        } else {
          *same += row;
        }
      }
    }
    std::ranges::stable_sort(rows, std::greater(), &Row::ms);
    return rows;
  }

  Row row_of(const CallInfo& info, size_t run, size_t call) const {
    Row row{.calls = static_cast<double>(info.steps)};
    for (const StepTimes* t : steps_) row.ms += mean_ms(t->runs[run].calls[call].call);
    if (info.is_collective) return row;  // add_collective_row() reports the bandwidth
    row.flops = info.flops;
    row.bytes = info.bytes;
    row.flops_ms = 1e3 * info.flops / rates_.flops(info.dtype);
    row.predicted = info.predicted_ms >= 0;
    if (row.predicted) {
      row.predicted_ms = info.predicted_ms;
      row.measured_ms = row.ms;
    }
    return row;
  }

  void header(const char* what) {
    text_ += fmt::format("{:>7} {:>9} {:>6} {:>8} {:>4} {:>7} {:>4} {:>9} {:>6}  {}\n", "share",
                         "ms", "calls", "GFLOP/s", "%", "GB/s", "%", "predicted", "ratio", what);
  }

  void add(const Row& row) {
    const auto percent = [](double part) {  // "" if the peak rate is unknown
      return std::isfinite(part) ? fmt::format("{:.0f}", 100 * part) : "";
    };
    const double s = row.ms / 1e3;
    const bool worked = s > 0 && row.calls > 0;
    const bool computed = worked && row.flops > 0, moved = worked && row.bytes > 0;
    text_ += fmt::format(
        "{:>5.1f} % {:>9.3f} {:>6} {:>8} {:>4} {:>7} {:>4} {:>9} {:>6}  {}\n",
        100 * row.ms / breakdown_.step, row.ms, row.calls > 0 ? fmt::format("{:g}", row.calls) : "",
        computed ? fmt::format("{:.1f}", row.flops / s / 1e9) : "",
        computed ? percent(row.flops_ms / row.ms) : "",
        moved ? fmt::format("{:.1f}", row.bytes / s / 1e9) : "",
        moved ? percent(row.bytes / s / rates_.bytes_per_second) : "",
        row.predicted ? fmt::format("{:.3f}", row.predicted_ms) : "",
        row.predicted ? fmt::format("{:.2f}", row.measured_ms / row.predicted_ms) : "", row.key);
  }

  void add_rows(const CallKey& key, size_t most) {
    std::vector<Row> all = rows(key);
    Row rest{.key = ""};
    for (size_t i = most; i < all.size(); ++i) rest += all[i];
    const size_t left = all.size() > most ? all.size() - most : 0;
    all.resize(all.size() - left);
    for (const Row& row : all) add(row);
    if (left == 0) return;
    rest.key = fmt::format("{} other rows", left);
    add(rest);
  }

  void add_total() {
    Row total;
    for (const Row& row : rows([](const CallInfo&) { return std::string(); })) total += row;
    total.key = "total";
    total.ms = breakdown_.step;
    total.predicted = false;
    add(total);
  }

  /// Adds a row for all collectives, which run concurrently with the other calls.
  void add_collective_row() {
    double ms = 0, bytes = 0;
    int64_t count = 0;
    for (size_t r = 0; r < step_.runs.size(); ++r) {
      for (size_t c = 0; c < step_.runs[r].size(); ++c) {
        if (!step_.runs[r][c].is_collective) continue;
        for (const StepTimes* t : steps_) ms += mean_ms(t->runs[r].calls[c].collective);
        bytes += step_.runs[r][c].bytes;
        ++count;
      }
    }
    if (count == 0) return;
    text_ += fmt::format("concurrent: {} collectives of {:.2f} MB, {:.3f} ms, {:.2f} GB/s\n", count,
                         bytes / 1e6, ms, bytes / ms / 1e6);
  }

  /// Adds a row with the median time between the end of a step and the start of the next step.
  void add_gap_between_steps() {
    std::vector<double> gaps;
    for (size_t i = 1; i < step_.times.size(); ++i) {
      gaps.push_back(static_cast<double>(step_.times[i].step.begin - step_.times[i - 1].step.end));
    }
    if (gaps.empty()) return;
    std::ranges::sort(gaps);
    text_ += fmt::format("between two steps: {:.3f} ms (median)\n", gaps[gaps.size() / 2] / 1e6);
  }

  void add_sums(const char* what, const CallKey& key) {
    text_ += "\n";
    header(fmt::format("by {}", what).c_str());
    add_rows(key, kMaxRows);
  }

  const ProfiledStep& step_;
  const PeakRates& rates_;
  std::vector<const StepTimes*> steps_;
  StepBreakdown breakdown_;
  std::string text_;
};

}  // namespace

std::string ProfiledStep::name() const {
  const char* what = mode == Mode::train ? "training" : mode == Mode::eval ? "eval" : "predict";
  return fmt::format("{} step of {} samples{}", what, batch,
                     length == 0 ? "" : fmt::format(" of length {}", length));
}

std::string Profile::device_text() const {
  return threads > 0 ? fmt::format("on {} threads", threads) : "on a GPU";
}

std::string Profile::table(const PeakRates& rates) const {
  std::string text = fmt::format(
      "profile of {} {}; at most {:.0f} GFLOP/s in {}, {:.0f} in bf16, and {:.1f} GB/s of "
      "memory\n",
      program, device_text(), rates.flops_f32 / 1e9, rates.f32_name(), rates.flops_bf16 / 1e9,
      rates.bytes_per_second / 1e9);
  for (const ProfiledStep& step : steps) text += "\n" + Table(step, rates).text(warm_up);
  return text;
}

}  // namespace fluid
