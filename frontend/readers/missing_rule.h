#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/readers/column_table_context.h"

namespace fluid {

/// Treatment of a row in which the number of a column is missing.
struct MissingRule {
  enum Kind {
    kReject,
    kDropRow,
    kDroppedInTraining,  ///< training dropped such rows, so eval and predict reject them
    kMean,
    kConstant
  } kind = kReject;
  double constant = 0;

  bool fills_in() const { return kind == kMean || kind == kConstant; }
  bool operator==(const MissingRule&) const = default;
};

/// The rules of option missing=RULE,COLUMN:RULE,... RULE is error, drop, mean or a number. A rule
/// without a column applies to all columns that no other rule names.
class MissingRules {
 public:
  /// `columns`: the columns of the data. `dtype`: f32 or f64, that of the columns of floats. Throws
  /// UserError for another rule or column, for a number beyond the range of `dtype`, and for two
  /// rules of one column.
  MissingRules(const ColumnTableContext& context, const std::vector<std::string>& columns,
               DType dtype);

  const MissingRule& of(const std::string& column) const;
  /// Whether option missing names `column`.
  bool names(const std::string& column) const { return rules_.contains(column); }
  bool drop_rows() const;                                ///< whether a rule leaves out rows
  const std::string& option() const { return option_; }  ///< the text of option missing

 private:
  std::string option_;
  MissingRule others_;
  std::map<std::string, MissingRule> rules_;  ///< column -> its rule
};

/// Returns how a user gives `column` one of the rules `rules`: "add missing=drop", or, beside the
/// option missing=mean, "write missing=mean,y:drop". `option`: MissingRules::option().
std::string missing_rule_hint(const std::string& option, const std::string& column,
                              const std::string& rules);

/// Whether `field` is empty or a common marker for a missing value, such as "NaN".
bool is_missing(std::string_view field);

}  // namespace fluid
