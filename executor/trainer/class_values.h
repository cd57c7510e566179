#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "frontend/readers/column_table.h"
#include "ir/graph.h"

namespace fluid {

/// The labels and predictions of a classifier.
struct ClassValues {
  Value label, prediction;  ///< class indices, both of the same shape [N, ...]
  int64_t classes = 0;
  std::optional<int64_t> ignored_class = {};  ///< label that the loss ignores; nullopt: none
  /// Name of the feed that holds the labels. Empty for binary labels, and for labels that are
  /// computed or not integers.
  std::string label_feed = {};
};

/// Records the labels and predictions, as class indices, of the first classification loss among
/// `ops`. Returns nullopt if there is none.
std::optional<ClassValues> class_values(ir::Graph& graph, const std::set<const ir::Op*>& ops);

/// Returns the class names of a classifier: the categories of its label feed in `table`. A class
/// without a category is named by its index. Returns an empty list if `table` is null, or if the
/// label feed has no categories or more categories than the loss has classes.
std::vector<std::string> class_names(const ir::Graph& graph, const ColumnTable* table);

}  // namespace fluid
