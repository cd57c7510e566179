#include "executor/fluidrun/epoch_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "executor/fluidrun/print_to.h"
#include "executor/fluidrun/standard_output.h"

namespace fluid {
namespace {

constexpr size_t kNarrowest = 9;  // -1.234e+05

size_t width_of(const std::string& name) { return std::max(kNarrowest, name.size()); }

}  // namespace

size_t EpochTable::epoch_width() const {
  return std::max<size_t>(5, 2 * std::to_string(epochs_).size() + 1);
}

void EpochTable::print_names(const NamedScalars& values) {
  std::string line = fmt::format("{:>{}}", "epoch", epoch_width());
  for (const auto& [name, value] : values) {
    names_.push_back(name);
    line += fmt::format("  {:>{}}", name, width_of(name));
  }
  print_to(stdout, "{}  {:>8}  {:>8}\n", line, "ms/step", "time");
}

void EpochTable::print(const EpochEvent& epoch) {
  NamedScalars values = epoch.training;
  for (const auto& [name, value] : epoch.validation) values.emplace_back("val_" + name, value);
  if (names_.empty()) print_names(values);
  std::string line =
      fmt::format("{:>{}}", fmt::format("{}/{}", epoch.epoch, epochs_), epoch_width());
  for (const std::string& name : names_) {
    const auto value = std::ranges::find(values, name, &std::pair<std::string, double>::first);
    line += fmt::format("  {:>{}}", value == values.end() ? "-" : scalar_text(value->second),
                        width_of(name));
  }
  print_to(stdout, "{}  {:>8.2f}  {:>6.2f} s{}\n", line, epoch.ms_per_step, epoch.seconds,
           epoch.best ? "  best" : "");
  flush_output();
}

}  // namespace fluid
