#include "frontend/readers/missing_rule.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "ir/error.h"
#include "ir/number.h"
#include "ir/text.h"

namespace fluid {
namespace {

std::optional<MissingRule> parse_rule(const std::string& text, const ColumnTableContext& context) {
  if (text == "error") return MissingRule{};
  if (text == "mean") return MissingRule{MissingRule::kMean};
  if (text == "drop") {
    const bool is_from_training = context.option_is_from_table("missing");
    return MissingRule{is_from_training ? MissingRule::kDroppedInTraining : MissingRule::kDropRow};
  }
  const std::optional<double> number = parse_number<double>(text);
  if (!number || !std::isfinite(*number)) return std::nullopt;
  return MissingRule{MissingRule::kConstant, *number};
}

}  // namespace

MissingRules::MissingRules(const ColumnTableContext& context,
                           const std::vector<std::string>& columns, DType dtype) {
  const DataArgs& args = context.args();
  const std::string* option = args.find("missing");
  if (option == nullptr) return;
  option_ = *option;
  bool has_others = false;
  for (const std::string& item : ir::split_at_commas(*option)) {
    const size_t colon = item.rfind(':');
    const std::string text = colon == std::string::npos ? item : item.substr(colon + 1);
    const std::optional<MissingRule> rule = parse_rule(text, context);
    if (!rule) {
      args.fail("option missing=" + *option + (colon == std::string::npos ? "" : ": " + text) +
                " must be error, drop, mean or a number");
    }
    if (dtype == DType::f32 && !std::isfinite(static_cast<float>(rule->constant))) {
      args.fail("option missing: " + text + " is beyond the range of f32");
    }
    const std::string column = item.substr(0, std::min(colon, item.size()));
    if (colon == std::string::npos) {
      if (std::exchange(has_others, true))
        args.fail("option missing has two rules for all columns");
      others_ = *rule;
    } else if (std::ranges::find(columns, column) != columns.end()) {
      if (!rules_.emplace(column, *rule).second) {
        args.fail("option missing names column '" + column + "' twice");
      }
    } else if (!context.option_is_from_table("missing")) {  // data to predict lacks the label
      args.fail("option missing: no column '" + column + "'" + did_you_mean(column, columns));
    }
  }
}

const MissingRule& MissingRules::of(const std::string& column) const {
  const auto found = rules_.find(column);
  return found == rules_.end() ? others_ : found->second;
}

bool MissingRules::drop_rows() const {
  const auto drops = [](const MissingRule& rule) { return rule.kind == MissingRule::kDropRow; };
  return drops(others_) ||
         std::ranges::any_of(rules_, [&](const auto& entry) { return drops(entry.second); });
}

std::string missing_rule_hint(const std::string& option, const std::string& column,
                              const std::string& rules) {
  if (option.empty()) return "add missing=" + rules;
  const std::string start = column + ":", rule = start + rules;
  for (const std::string& item : ir::split_at_commas(option)) {
    if (item.starts_with(start)) return "write " + rule + " in option missing";
  }
  return "write missing=" + option + "," + rule;
}

bool is_missing(std::string_view field) {
  static const std::set<std::string> kNames = {"", "na", "n/a", "#n/a", "nan", "null", "none"};
  return kNames.contains(ir::lowercase(field));
}

}  // namespace fluid
