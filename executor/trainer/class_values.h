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
  Value label, prediction;  ///< [N, ...] of equal shapes; class indices
  int64_t classes = 0;
  std::optional<int64_t> ignored_class = {};  ///< label without a loss; nullopt: none
  /// Name of the feed that holds the labels; empty: computed from feeds.
  std::string label_feed = {};
};

/// Records the labels and predictions, as class indices, of the first classification loss among
/// `ops`. Returns nullopt if there is none.
std::optional<ClassValues> class_values(ir::Graph& graph, const std::set<const ir::Op*>& ops);

/// Returns the names of the classes that a classifier scores, one for each: the categories in
/// `table` (null: none) of the feed of its labels, then numbers. Empty if the graph has no loss op
/// with integer labels from a feed of categories.
std::vector<std::string> class_names(const ir::Graph& graph, const ColumnTable* table);

}  // namespace fluid
