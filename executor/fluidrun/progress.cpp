#include "executor/fluidrun/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/launcher/print_to.h"

namespace fluid {

namespace {

constexpr auto kRedrawInterval = std::chrono::milliseconds(100);
constexpr auto kLineInterval = std::chrono::seconds(10);
constexpr int kBarWidth = 24;

bool is_terminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && (term == nullptr || std::string_view(term) != "dumb");
}

size_t terminal_width() {
  struct winsize size = {};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

/// Peak resident memory of the process in MiB.
double peak_mib() {
  struct rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

std::string duration(double seconds) {
  constexpr double kMaxSeconds = 1e15;
  const auto s = static_cast<int64_t>(std::min(seconds, kMaxSeconds) + 0.5);
  if (s < 60) return fmt::format("{} s", s);
  return s < 3600 ? fmt::format("{}:{:02}", s / 60, s % 60)
                  : fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

/// Joins the fields with spaces. Omits the last fields if the line would exceed `width` columns.
std::string join_fitting(const std::vector<std::string>& fields, size_t width) {
  std::string line = fields.front();
  for (size_t i = 1; i < fields.size() && line.size() + 2 + fields[i].size() <= width; ++i) {
    line += "  " + fields[i];
  }
  return line.substr(0, width);
}

}  // namespace

ProgressBar::ProgressBar(const Options& options)
    : options_(options), draws_bar_(is_terminal() && options.log_every == 0) {
  begin_epoch(1);
}

void ProgressBar::begin_epoch(int64_t epoch) {
  epoch_ = epoch;
  steps_done_ = samples_ = 0;
  epoch_start_ = last_draw_ = Clock::now();
}

bool ProgressBar::redraw_due(int64_t step) {
  if (options_.quiet) return false;
  const Clock::time_point now = Clock::now();
  const auto interval =
      draws_bar_ ? Clock::duration(kRedrawInterval) : Clock::duration(kLineInterval);
  const bool due =
      options_.log_every > 0 ? step % options_.log_every == 0 : now - last_draw_ >= interval;
  if (due) last_draw_ = now;
  return due;
}

std::string ProgressBar::time_left(const StepEvent& step, double ms_per_step) const {
  if (!options_.steps_per_epoch) return "";
  const int64_t steps = *options_.steps_per_epoch;
  const double left = static_cast<double>(steps - step.step_in_epoch) +
                      static_cast<double>(options_.epochs - epoch_) * static_cast<double>(steps);
  return duration(left * ms_per_step / 1e3);
}

void ProgressBar::draw(const StepEvent& step) {
  const std::string means = step.means.text();
  const double seconds = std::chrono::duration<double>(last_draw_ - epoch_start_).count();
  const double ms = 1e3 * seconds / static_cast<double>(steps_done_);
  const std::optional<int64_t>& steps = options_.steps_per_epoch;
  const std::string eta = time_left(step, ms);
  const std::string at =
      fmt::format("{}{}", step.step_in_epoch, steps ? fmt::format("/{}", *steps) : "");
  const double rate = static_cast<double>(samples_) / seconds;
  const std::string lr = fmt::format("lr {:g}", step.learning_rate);
  const std::string scale = step.loss_scaling
                                ? fmt::format("scale {:g}, {} skipped", step.loss_scaling->scale,
                                              step.loss_scaling->skipped)
                                : "";
  const std::string text =
      fmt::format("{}  {}{}  {:.2f} ms/step  {:.0f} samples/s  {}  {}peak {:.0f} MiB", at,
                  steps ? eta + " left  " : "", means, ms, rate, lr,
                  scale.empty() ? "" : scale + "  ", peak_mib());
  if (!draws_bar_) {
    print_to(stderr, "epoch {}/{}  step {}\n", epoch_, options_.epochs, text);
    return;
  }
  const size_t width = terminal_width() - 1;  // -1: a line of full width would wrap
  std::string bar;
  if (steps) {
    const auto full = static_cast<size_t>(kBarWidth * step.step_in_epoch / *steps);
    bar = fmt::format("[{:-<{}}] ", std::string(full, '='), kBarWidth);
  }
  std::string line = fmt::format("epoch {}/{} {}{}", epoch_, options_.epochs, bar, text);
  if (line.size() > width) {
    std::vector<std::string> fields = {fmt::format("{}/{} {} {}", epoch_, options_.epochs, at, eta),
                                       means, fmt::format("{:.1f} ms", ms),
                                       fmt::format("{:.0f}/s", rate), lr};
    if (!scale.empty()) fields.push_back(scale);
    fields.push_back(fmt::format("{:.0f} MiB", peak_mib()));
    line = join_fitting(fields, width);
  }
  print_to(stderr, "\r\x1b[K{}", line);
  drawn_ = true;
}

void ProgressBar::clear() {
  if (drawn_) print_to(stderr, "\r\x1b[K");
  drawn_ = false;
}

namespace {

constexpr size_t kMinColumnWidth = 9;  // length of "1.234e-05"

size_t width_of(const std::string& name) { return std::max(kMinColumnWidth, name.size()); }

}  // namespace

size_t EpochTable::epoch_width() const {
  return std::max<size_t>(5, 2 * std::to_string(epochs_).size() + 1);
}

void EpochTable::print_header(const NamedScalars& values) {
  std::string line = fmt::format("{:>{}}", "epoch", epoch_width());
  for (const auto& [name, value] : values) {
    columns_.push_back(name);
    line += fmt::format("  {:>{}}", name, width_of(name));
  }
  print_to(stdout, "{}  {:>8}  {:>8}\n", line, "ms/step", "time");
}

void EpochTable::print(const EpochEvent& epoch) {
  NamedScalars values = epoch.training;
  for (const auto& [name, value] : epoch.validation) values.emplace_back("val_" + name, value);
  if (columns_.empty()) print_header(values);
  std::string line =
      fmt::format("{:>{}}", fmt::format("{}/{}", epoch.epoch, epochs_), epoch_width());
  for (const std::string& name : columns_) {
    const auto value = std::ranges::find(values, name, &std::pair<std::string, double>::first);
    line += fmt::format("  {:>{}}", value == values.end() ? "-" : format_scalar(value->second),
                        width_of(name));
  }
  print_to(stdout, "{}  {:>8.2f}  {:>6.2f} s{}\n", line, epoch.ms_per_step, epoch.seconds,
           epoch.best ? "  best" : "");
  flush_stdout();
}

}  // namespace fluid
