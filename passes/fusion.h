#pragma once

// Kernel fusion: partitions the ops into groups, each of which becomes one kernel. A cost model
// decides which groups to merge.

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>

#include "ops/group.h"
#include "passes/options.h"

namespace fluid {

/// Ops that become one kernel, or a single op that is not fused.
struct FusionGroup {
  std::vector<const ir::Op*> ops;  ///< the ops of the group, in graph order
  /// Whether one kernel is generated for the ops. Requires is_groupable() of each op, or a Loops op
  /// that is alone in the group.
  bool fusible = false;
  double cost = 0;                      ///< estimated cost of the kernel, in scalar operations
  const ir::Op* contraction = nullptr;  ///< the only contraction in the group; null: none
  Values outputs;                       ///< results used outside the group, in the order of `ops`
  std::set<Value> inputs;   ///< values that the ops read from other groups; empty until computed
  int64_t level = 0;        ///< topological level; higher than the level of every producer group
  uint64_t reached_by = 0;  ///< bit i: this group contains or depends on landmarks_[i]
  /// Bit i: this group contains landmarks_[i], or landmarks_[i] depends on it.
  uint64_t reaches = 0;
};

/// Whether `op` is a contraction, such as a matmul or a convolution, that is large enough for its
/// own loop nest. The result must have more than 8 elements, each the sum of more than 8 products.
/// An operand element must be used in more than 2 products on average.
bool is_contraction(const ir::Op& op, int64_t batch);

/// Kernel fusion of one graph. Initially, each group contains one op. Merging groups never creates
/// a cycle in the dependency graph of the groups.
class Fusion {
 public:
  Fusion(const ir::Graph& graph, const Options& options);
  /// Merges groups as long as this lowers the estimated cost.
  void run();
  /// The groups, in a topological order.
  std::vector<FusionGroup> groups_in_order() const;

 private:
  FusionGroup* group_of(const ir::Op* op) const { return groups_of_.at(op); }
  Values outputs_of(const FusionGroup& group) const;
  bool is_within_limits(const FusionGroup& a, const FusionGroup& b, bool horizontal) const;
  bool separates(const FusionGroup& a, const FusionGroup& b) const;
  bool try_merge(FusionGroup* a, FusionGroup* b, bool horizontal = false, double growth = 1);
  void place_landmarks();
  std::vector<FusionGroup*> users(const FusionGroup& group) const;
  std::vector<FusionGroup*> producers(const FusionGroup& group) const;
  bool makes_cycle(const FusionGroup* a, const FusionGroup* b) const;
  bool has_indirect_path(const FusionGroup* first, const FusionGroup* last) const;
  void update_after_merge(FusionGroup* merged, const FusionGroup& other) const;
  void raise_user_levels(FusionGroup* group) const;
  bool mixes_contractions(const FusionGroup& a, const FusionGroup& b) const;
  struct KernelEstimate {
    bool valid = false;  ///< whether one kernel can be generated for the group
    size_t parts = 0;    ///< number of GroupParts, which share no loops with each other
    double cost = 0;     ///< estimated cost, in scalar operations
  };
  const KernelEstimate& estimate_of(const FusionGroup& group) const;
  std::optional<double> cost_of(const FusionGroup& group, bool horizontal) const;
  std::set<Value>& inputs_of(FusionGroup& group) const;
  bool are_independent(FusionGroup& large, FusionGroup& small) const;
  void append_outputs(FusionGroup& to, const FusionGroup& from) const;
  void merge_with_producers();
  bool is_view_between_maps(const Value& v, const ir::Op& user) const;
  void merge_through_view(const Value& v, const ir::Op& user);
  void merge_siblings();
  struct InputClass {
    bool only_sources = true, only_small = true;
  };
  InputClass input_class_of(FusionGroup& group) const;
  bool is_in_parameter_group(const ir::Op& op) const;
  void fuse_horizontally(const std::function<bool(const ir::Op&)>& is_candidate);

  const ir::Graph& graph_;
  const Options& options_;
  bool in_scan_;  ///< whether the graph is the body of a scan
  std::vector<std::unique_ptr<FusionGroup>> groups_;
  std::unordered_map<const ir::Op*, FusionGroup*> groups_of_;
  std::unordered_map<const ir::Op*, size_t> positions_;
  /// Ops with precomputed reachability, at most 64. See fusion_cycles.cpp.
  std::vector<const ir::Op*> landmarks_;
  Uses uses_;
  /// Edges from find_order_edges(). Predecessors: op -> ops that must run before it. Successors:
  /// op -> ops that must run after it.
  std::unordered_map<const ir::Op*, std::vector<const ir::Op*>> order_predecessors_,
      order_successors_;
  std::set<Value> graph_outputs_;
  mutable LoweringCache lowered_;  ///< cache of lowered ops
  mutable std::unordered_map<GroupKey, KernelEstimate, GroupKeyHash> estimates_;
};

}  // namespace fluid
