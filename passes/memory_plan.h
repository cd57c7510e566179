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

inline constexpr int64_t kAlign = 64;  ///< alignment of ranges: a cache line, the widest vector
/// Rounds `bytes` up to kAlign.
constexpr int64_t aligned(int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

/// Regions of the arena. `outputs` is double-buffered, at equal offsets, for alternating steps. So
/// is `feeds` on a device that copies the next step's feeds during a step.
enum class Region : uint8_t { state, feeds, outputs, transient };
std::string_view name_of(Region region);

/// Category of a range, for `plan` and `summary`.
enum class Holds : uint8_t {
  parameter,
  optimizer,  ///< moments of the parameters, update counter
  buffer,     ///< other states, such as running means
  feed,
  output,
  gradient,
  activation,
  workspace,
};
std::string_view name_of(Holds holds);

/// A range of arena memory that holds a value or an op's workspace.
struct Range {
  Region region = Region::transient;
  Holds holds = Holds::activation;
  int64_t offset = 0;  ///< in its region, a multiple of kAlign
  int64_t bytes = 0;
  int first = 0;     ///< position of the first op that touches it; -1: an earlier micro-batch
  int last = 0;      ///< position of the last op; not transient: the whole step
  std::string name;  ///< name of the variable, feed or output; else of the value or op
};

/// Memory plan of a final program's main graph.
///
/// Every result of the main graph has a range. The result of an Alias shares the range of its
/// operand. A result that is stored directly into a variable, or computed in place, has the range
/// that it overwrites. Ranges of states are identified by name, so an executor may place variables
/// in a table of its own that several programs share.
struct MemoryPlan {
  std::map<Value, Range> values;
  std::map<const ir::Op*, Range>
      workspaces;     ///< of fused ops and library kernels; destination of `carry`
  int64_t state = 0;  ///< sizes of the regions in bytes
  int64_t feeds = 0;
  int64_t outputs = 0;
  int64_t transient = 0;
  int64_t& bytes(Region region);
  int64_t bytes(Region region) const { return const_cast<MemoryPlan&>(*this).bytes(region); }
  std::string peak;                  ///< the op at the peak of memory in use
  std::map<Holds, int64_t> at_peak;  ///< bytes in use at the peak; one slot of feeds and outputs
  /// Arena bytes for this step alone, with `feed_slots` slots for feeds.
  int64_t total(int feed_slots) const {
    return state + feed_slots * feeds + 2 * outputs + transient;
  }
};

/// Reads the plan from the attributes that plan_memory set on `final_program`.
MemoryPlan memory_plan(const ir::Program& final_program, const Options& options);

/// Throws InternalError unless the plan is safe. Uses the program alone, not the planner's data.
/// Checks that values in use at once do not overlap, except for in-place results. Checks that
/// ranges lie inside their regions. Checks that no variable is overwritten before its last reader,
/// or by an op that may still reject data.
void verify_plan(const MemoryPlan& plan, const ir::Program& final_program, const Options& options);

/// The value that owns the bytes of `v`. Follows Alias ops.
Value root_of(Value v);

/// Whether the kernel of `op` reads at data-dependent indices and so may reject data.
bool checks_data(const ir::Op& op);

/// Results that are written before all data is checked; with several processes, before the error
/// words are exchanged. They must not alias a variable, because a rejected step leaves variables
/// unchanged.
std::set<Value> unchecked_results(const ir::Graph& final_graph);

/// Pairs (result, operand) of ops that may alias. Fused ops are analysed once per kind of body. Ops
/// must outlive this object, unchanged.
class InPlacePairs {
 public:
  const std::vector<InPlace>& of(const ir::Op& op);

 private:
  const std::vector<InPlace>* of_body(const ir::Graph& body);

  std::unordered_map<const ir::Op*, const std::vector<InPlace>*> of_op_;
  std::unordered_map<const ir::Op*, std::vector<InPlace>> own_;  ///< ops without a generated body
  OpKinds kinds_;
  std::unordered_map<GroupKey, std::vector<InPlace>, GroupKeyHash> of_body_;
};

}  // namespace fluid
