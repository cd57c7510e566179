#include "executor/trainer/history_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "executor/comm/process_group.h"
#include "executor/executor.h"
#include "executor/trainer/callbacks.h"
#include "frontend/files/csv.h"
#include "frontend/files/gz.h"
#include "ir/atomic_file.h"
#include "ir/error.h"
#include "ir/number.h"

namespace fluid {
namespace {

using CsvRow = std::vector<std::pair<std::string, std::string>>;

const std::string kEpoch = "epoch";
const std::string kLastField = "seconds";  ///< the column before those of the learning rates
const std::string kRate = "lr";
const std::string kRecipeRate = "lr_";

std::string value_of(const CsvRow& row, const std::string& column) {
  const auto found = std::ranges::find(row, column, &CsvRow::value_type::first);
  return found == row.end() ? "" : found->second;
}

/// The rows of a file that HistoryCsv wrote.
std::vector<CsvRow> read_rows(const std::string& path) {
  const std::string text = read_gz_or_plain(path);
  CsvParser parser(text, path);
  if (!parser.next()) return {};
  const std::vector<std::string> columns(parser.fields().begin(), parser.fields().end());
  if (columns.empty() || columns.front() != kEpoch) {
    throw UserError("'" + path + "' is not a history of epochs: its first column is not 'epoch'");
  }
  std::vector<CsvRow> rows;
  while (parser.next()) {
    CsvRow& row = rows.emplace_back();
    for (size_t i = 0; i < std::min(columns.size(), parser.fields().size()); ++i) {
      row.emplace_back(columns[i], parser.fields()[i]);
    }
  }
  return rows;
}

/// The learning rates in a row: recipe -> rate. Their columns follow kLastField.
std::map<std::string, double> rates_of(const CsvRow& row) {
  std::map<std::string, double> rates;
  const auto field = std::ranges::find(row, kLastField, &CsvRow::value_type::first);
  for (auto at = field; at != row.end() && ++at != row.end();) {
    const std::string& column = at->first;
    if (column != kRate && !column.starts_with(kRecipeRate)) break;
    const std::optional<double> rate = parse_number<double>(at->second);
    if (rate) rates[column == kRate ? "" : column.substr(kRecipeRate.size())] = *rate;
  }
  return rates;
}

}  // namespace

void HistoryCsv::attach(FitOptions& options, Executor& executor) {
  if (executor.process_group().world().rank != 0) return;
  check_writable(path_);
  append_callback(options.on_begin, [this](const BeginEvent& e) { begin(e); });
  append_callback(options.on_step, [this](const StepEvent& e) { add(e); });
  append_callback(options.on_epoch, [this](const EpochEvent& e) { add(e); });
  append_callback(options.on_end, [this] {
    if (!failure_.empty()) throw UserError(failure_);
  });
}

void HistoryCsv::begin(const BeginEvent& begin) {
  failure_.clear();
  rows_.clear();
  rates_.clear();
  if (begin.steps == 0 || !std::filesystem::exists(path_)) return;
  rows_ = read_rows(path_);
  // The steps of the current epoch before the checkpoint may be the last ones of their recipes.
  for (const CsvRow& row : rows_) {
    const bool is_current = value_of(row, kEpoch) == std::to_string(begin.epochs + 1);
    if (is_current) rates_ = rates_of(row);
  }
  std::erase_if(rows_, [&](const CsvRow& row) {
    return parse_number<int64_t>(value_of(row, kEpoch)).value_or(INT64_MAX) > begin.epochs;
  });
}

void HistoryCsv::add(const StepEvent& step) { rates_[step.recipe] = step.learning_rate; }

void HistoryCsv::add(const EpochEvent& epoch) {
  CsvRow row = {{kEpoch, std::to_string(epoch.epoch)},
                {"steps", std::to_string(epoch.steps)},
                {"complete", epoch.complete ? "1" : "0"},
                {"best", epoch.best ? "1" : "0"},
                {"ms_per_step", fmt::format("{:.6g}", epoch.ms_per_step)},
                {kLastField, fmt::format("{:.6g}", epoch.seconds)}};
  const auto number = [](double value) { return fmt::format("{:.9g}", clear_nan_sign(value)); };
  for (const auto& [recipe, rate] : std::exchange(rates_, {})) {
    row.emplace_back(recipe.empty() ? kRate : kRecipeRate + recipe, number(rate));
  }
  const CsvRow event = row;
  for (const auto& [name, value] : epoch.training) {
    const bool is_taken = std::ranges::find(event, name, &CsvRow::value_type::first) != event.end();
    row.emplace_back((is_taken ? "train_" : "") + name, number(value));
  }
  for (const auto& [name, value] : epoch.validation) row.emplace_back("val_" + name, number(value));
  std::erase_if(rows_, [&](const CsvRow& r) { return value_of(r, kEpoch) == row.front().second; });
  rows_.push_back(std::move(row));
  if (!failure_.empty()) return;
  try {
    write();
  } catch (const UserError& e) {
    failure_ = e.what();
  }
}

void HistoryCsv::write() {
  std::vector<std::string> columns;  // in order of first occurrence
  for (const CsvRow& row : rows_) {
    for (const auto& [column, value] : row) {
      if (std::ranges::find(columns, column) == columns.end()) columns.push_back(column);
    }
  }
  std::string text;
  const auto add_line = [&](auto field) {
    for (size_t i = 0; i < columns.size(); ++i) {
      text += (i == 0 ? "" : ",") + quote_csv_field(field(columns[i]));
    }
    text += "\n";
  };
  add_line([](const std::string& column) { return column; });
  for (const CsvRow& row : rows_) {
    add_line([&](const std::string& column) { return value_of(row, column); });
  }
  write_file_atomically(path_, text);
}

}  // namespace fluid
