#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"
#include "ops/op_def.h"
#include "ops/op_kinds.h"
#include "passes/options.h"
#include "passes/target.h"

namespace fluid {

inline constexpr int64_t kAlign = 64;  ///< alignment of ranges in bytes: one cache line
/// Rounds `bytes` up to kAlign.
constexpr int64_t align_up(int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

/// Regions of the arena, the memory of a program. `outputs` is double-buffered: consecutive steps
/// alternate between two slots. `feeds` is double-buffered on a device that copies the feeds of the
/// next step during a step. Offsets are equal in both slots.
enum class Region : uint8_t { state, feeds, outputs, transient };
std::string_view name_of(Region region);

/// Category of a range in the memory report of the `plan` command and of `summary`.
enum class RangeCategory : uint8_t {
  parameter,
  optimizer,  ///< optimizer states: moments of the parameters, the update counter
  buffer,     ///< other states, such as the running statistics of batch normalization
  feed,
  output,
  gradient,
  activation,
  workspace,
};
std::string_view name_of(RangeCategory category);

/// A byte range of the arena that holds a value or the workspace of an op, and its live range.
struct Range {
  Region region = Region::transient;
  RangeCategory category = RangeCategory::activation;
  int64_t offset = 0;  ///< bytes from the start of the region; a multiple of kAlign
  int64_t bytes = 0;
  /// Position of the first op that uses the range; -1: an earlier micro-batch writes the range.
  int first = 0;
  /// Position of the last op that uses the range. A range outside of Region::transient is live for
  /// the whole step.
  int last = 0;
  std::string name;  ///< name of the variable, feed or output; otherwise name of the value or op
};

/// Memory plan of the main graph of a compiled program.
///
/// Every result of an op has a range. The result of an Alias op has the same range as its operand.
/// A result that is written directly to a variable, or computed in place, has the range that it
/// overwrites. Ranges in Region::state carry the name of their variable. Executors use the name to
/// store the variable outside the arena and to share it between programs.
struct MemoryPlan {
  std::map<Value, Range> values;
  /// Workspaces of fused ops and library kernels. For a `carry` op: the range to which the op
  /// copies its operand.
  std::map<const ir::Op*, Range> workspaces;
  int64_t state = 0;  ///< size of each region in bytes; feeds and outputs: size of one slot
  int64_t feeds = 0;
  int64_t outputs = 0;
  int64_t transient = 0;
  int64_t& bytes(Region region);
  int64_t bytes(Region region) const { return const_cast<MemoryPlan&>(*this).bytes(region); }
  std::string peak;  ///< name and source location of the op at which most memory is in use
  /// Bytes in use at the peak, by category. Counts only one slot of feeds and of outputs.
  std::map<RangeCategory, int64_t> at_peak;
  /// Size of the arena in bytes if no other program shares it. `feed_slots` is 1 or 2.
  int64_t total(int feed_slots) const {
    return state + feed_slots * feeds + 2 * outputs + transient;
  }
};

/// The memory plan of a compiled program or graph (the main graph, or the body of a scan). Reads
/// the attributes that the plan_memory pass set. The arguments of a scan's body count as feeds.
MemoryPlan memory_plan(const ir::Program& final_program, const Options& options);
MemoryPlan memory_plan(const ir::Graph& final_graph, const Options& options);

/// Throws InternalError unless the plan is valid. Derives live ranges from the program,
/// independently of the plan_memory pass. Checks that ranges lie inside their regions, and that
/// values with overlapping live ranges do not overlap in memory, except for in-place results.
/// Checks that no variable is overwritten before its last user has run, or while an op may still
/// reject the step's data.
void verify_plan(const MemoryPlan& plan, const ir::Program& final_program, const Options& options);

/// The value whose memory `v` shares: the value at the end of the chain of Alias ops, or `v`
/// itself.
Value root_of(Value v);

/// Whether the kernel of `op` may reject the step's data, because it checks data-dependent indices
/// that may be out of bounds.
bool may_reject_data(const ir::Op& op);

/// Results that are written while the step's data may still be rejected: before the last data check
/// or, with several processes, before the ranks exchange their error words (the flags of rejected
/// data). Such a result must not alias a variable, because a rejected step leaves variables
/// unchanged.
std::set<Value> results_before_error_sync(const ir::Graph& final_graph);

/// Cache of in-place pairs: for each op, the (result, operand) pairs that may share memory. Fused
/// ops with equal bodies are analysed once. Ops must outlive this object and must not change.
class InPlacePairs {
 public:
  const std::vector<InPlace>& pairs_of(const ir::Op& op);

 private:
  const std::vector<InPlace>* pairs_of_body(const ir::Graph& body);

  std::unordered_map<const ir::Op*, const std::vector<InPlace>*> pairs_by_op_;
  /// In-place pairs of ops without a generated body, such as library kernels and collectives.
  std::unordered_map<const ir::Op*, std::vector<InPlace>> other_pairs_;
  OpKinds kinds_;
  std::unordered_map<GroupKey, std::vector<InPlace>, GroupKeyHash> pairs_by_body_;
};

}  // namespace fluid
