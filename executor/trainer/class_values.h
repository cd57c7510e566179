#pragma once

#include <optional>
#include <set>
#include <string>

#include "ir/graph.h"

namespace fluid {

/// The labels and predictions of a classifier.
struct ClassValues {
  Value label, prediction;  ///< [N, ...] of equal shapes; class indices
  int64_t classes = 0;
  std::optional<int64_t> ignored_class = {};  ///< label without a loss; nullopt: none
  std::string label_feed =
      {};  ///< name of the feed that holds the labels; empty: computed from feeds
};

/// Records the labels and predictions, as class indices, of the first classification loss among
/// `ops`. Returns nullopt if there is none.
std::optional<ClassValues> class_values(ir::Graph& graph, const std::set<const ir::Op*>& ops);

}  // namespace fluid
