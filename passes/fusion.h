#pragma once

// Groups of ops that become kernels. A cost model decides which groups to merge.

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>

#include "ops/group.h"
#include "passes/options.h"

namespace fluid {

/// An op, or several ops that become one kernel.
struct FusionGroup {
  std::vector<const ir::Op*> ops;       ///< in graph order
  bool fusible = false;                 ///< Map and Reduce ops only
  double cost = 0;                      ///< of the kernel, in scalar operations
  const ir::Op* contraction = nullptr;  ///< the contraction in the group; null: none
  Values outputs;                       ///< results used outside the group, in the order of `ops`
  std::set<Value> reads;                ///< operands from outside the group; empty: unknown
  int64_t level = 0;                    ///< above the level of every group it reads
  uint64_t reached_by = 0;              ///< bit set: landmarks inside or upstream
  uint64_t reaches = 0;                 ///< bit set: landmarks inside or downstream
};

/// Whether `op` is a sum of products with enough terms and enough operand reuse to deserve its own
/// loop nest.
bool is_contraction(const ir::Op& op, int64_t batch);

/// The groups of one graph. Merging keeps the graph of groups acyclic.
class Fusion {
 public:
  Fusion(const ir::Graph& graph, const Options& options);
  /// Merges groups as long as the estimated cost falls.
  void run();
  /// Returns the groups in an order of execution.
  std::vector<FusionGroup> ordered() const;

 private:
  FusionGroup* group_of(const ir::Op* op) const { return groups_of_.at(op); }
  Values outputs(const FusionGroup& group) const;
  bool fits(const FusionGroup& a, const FusionGroup& b, bool side_by_side) const;
  bool merge(FusionGroup* a, FusionGroup* b, bool side_by_side = false);
  void place_landmarks();
  std::vector<FusionGroup*> readers(const FusionGroup& group) const;
  std::vector<FusionGroup*> sources(const FusionGroup& group) const;
  bool makes_cycle(const FusionGroup* a, const FusionGroup* b) const;
  bool has_indirect_path(const FusionGroup* first, const FusionGroup* last) const;
  void take_place_of(FusionGroup* merged, const FusionGroup& other) const;
  void lift_readers(FusionGroup* group) const;
  bool mixes_contractions(const FusionGroup& a, const FusionGroup& b) const;
  struct Kernel {
    bool possible = false;
    size_t parts = 0;
    double cost = 0;
  };
  const Kernel& kernel_of(const FusionGroup& group) const;
  std::optional<double> cost_of(const FusionGroup& group, bool side_by_side) const;
  std::set<Value>& reads_of(FusionGroup& group) const;
  bool are_independent(FusionGroup& large, FusionGroup& small) const;
  void append_outputs(FusionGroup& to, const FusionGroup& from) const;
  void merge_with_producers();
  void merge_siblings();
  struct Waiting {
    bool for_nothing = true, for_small = true;
  };
  Waiting waiting_of(FusionGroup& group) const;
  bool is_parameter_map(const ir::Op& op) const;
  void gather(const std::function<bool(const ir::Op&)>& is_kind);

  const ir::Graph& graph_;
  const Options& options_;
  std::vector<std::unique_ptr<FusionGroup>> groups_;
  std::unordered_map<const ir::Op*, FusionGroup*> groups_of_;
  std::unordered_map<const ir::Op*, size_t> positions_;
  std::vector<const ir::Op*> landmarks_;  ///< at most 64
  Uses uses_;
  /// Dependencies without data flow, by the later and the earlier op: see order_edges().
  std::unordered_map<const ir::Op*, std::vector<const ir::Op*>> awaited_, waiting_;
  std::set<Value> graph_outputs_;
  mutable LoweredOps lowered_;  ///< cache, like kernels_
  mutable std::unordered_map<GroupKey, Kernel, GroupKeyHash> kernels_;
};

}  // namespace fluid
