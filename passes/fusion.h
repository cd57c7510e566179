#pragma once

// How the fusion pass decides: groups of ops, which may merge, and what that is worth.

#include <memory>
#include <optional>
#include <set>

#include "ops/group.h"
#include "passes/options.h"

namespace fluid {

/// An op, or several that become one kernel.
struct FusionGroup {
  std::vector<const ir::Op*> ops;  ///< in graph order
  bool fusible = false;            ///< Map and Reduce ops only
  double cost = 0;                 ///< of its kernel, in scalar operations
};

/// The groups of one graph; merging keeps the graph of groups free of cycles.
class Fusion {
 public:
  Fusion(const ir::Graph& graph, const Options& options);
  /// Merges groups while that pays.
  void run();
  /// In an order of execution.
  std::vector<const FusionGroup*> ordered() const;
  /// Values of the group that are read outside, in order of appearance.
  Values outputs(const FusionGroup& group) const;

 private:
  FusionGroup* group_of(const ir::Op* op) const { return groups_of_.at(op); }
  bool merge(FusionGroup* a, FusionGroup* b, bool side_by_side = false);
  bool makes_cycle(const FusionGroup* a, const FusionGroup* b) const;
  bool through_others(const FusionGroup* first, const FusionGroup* last) const;
  bool is_contraction(const ir::Op* op) const;
  bool mixes_contractions(const FusionGroup& a, const FusionGroup& b) const;
  std::optional<double> cost_of(const FusionGroup& group, bool side_by_side) const;
  void merge_with_producers();
  void merge_siblings();
  bool may_wait_for_each_other(const FusionGroup& a, const FusionGroup& b) const;
  void merge_updates();

  const ir::Graph& graph_;
  const Options& options_;
  std::vector<std::unique_ptr<FusionGroup>> groups_;
  std::map<const ir::Op*, FusionGroup*> groups_of_;
  std::map<const ir::Op*, size_t> positions_;
  std::map<Value, std::vector<ir::Op*>> uses_;
  std::set<Value> graph_outputs_;
  std::set<const ir::Op*> contractions_;
};

}  // namespace fluid
