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

inline constexpr int64_t kAlign = 64;  ///< of every range: a cache line, the widest vector
/// `bytes`, up to where the next range may start.
constexpr int64_t aligned(int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

/// The arena's parts. `outputs` exists twice, at equal offsets, for steps that take turns, and so
/// does `feeds` where a place copies those of a step while the step before runs.
enum class Region : uint8_t { state, feeds, outputs, transient };
std::string_view name_of(Region region);

/// What a range holds, for `plan` and `summary`.
enum class Holds : uint8_t {
  parameter,
  optimizer,  ///< moments of the parameters, the count of updates
  buffer,     ///< another state, such as a running mean
  feed,
  output,
  gradient,
  activation,
  workspace,
};
std::string_view name_of(Holds holds);

/// A stretch of memory for one value, or for one op's workspace.
struct Range {
  Region region = Region::transient;
  Holds holds = Holds::activation;
  int64_t offset = 0;  ///< in its region, a multiple of kAlign
  int64_t bytes = 0;
  int first = 0;     ///< position in main's ops of the first op that touches it; -1: a slice before
  int last = 0;      ///< and of the last; what is not transient lives all the time
  std::string name;  ///< the variable's, feed's or output's; else the value's or op's
};

/// Where everything of a final program's main graph lies.
///
/// Every result of main has a range but the stores (none) and what only `predict` dropped. Results
/// of Alias ops share their operand's range; a result stored directly into a variable, or computed
/// in place, has the range of what it overwrites. State ranges are known by name, so an executor
/// may place variables by a table of its own, common to several programs.
struct MemoryPlan {
  std::map<Value, Range> values;
  std::map<const ir::Op*, Range>
      workspaces;     ///< scratch of fused ops and library kernels; where a `carry` copies to
  int64_t state = 0;  ///< bytes of each region
  int64_t feeds = 0;
  int64_t outputs = 0;
  int64_t transient = 0;
  int64_t& bytes(Region region);
  int64_t bytes(Region region) const { return const_cast<MemoryPlan&>(*this).bytes(region); }
  std::string peak;                  ///< the op at which most of `transient` is in use
  std::map<Holds, int64_t> at_peak;  ///< bytes in use there, of one slot of each kind
  /// Of an arena for this step alone, on a place with so many slots for feeds.
  int64_t total(int feed_slots) const {
    return state + feed_slots * feeds + 2 * outputs + transient;
  }
};

/// The plan that the pass plan_memory left in the attributes of `final_program`.
MemoryPlan memory_plan(const ir::Program& final_program, const Options& options);

/// Throws InternalError unless the plan is safe. Judged from the program alone, without the
/// planner's reasoning: values in use at the same time do not overlap, but for results that their
/// op may write over an operand; nothing reaches over the end of its region; no variable is
/// overwritten before its last reader, or by an op that may yet refuse the data.
void verify_plan(const MemoryPlan& plan, const ir::Program& final_program, const Options& options);

/// The value whose bytes `v` is: follows Alias ops to what computes or holds it.
Value root_of(Value v);

/// Whether the kernel of `op` looks at indices from the data and may refuse them.
bool may_refuse(const ir::Op& op);

/// The results that are written before it is known that no op refuses the data, or of several
/// processes before they may tell each other so. A variable must not lie there, since a refused
/// step changes nothing.
std::set<Value> unchecked_results(const ir::Graph& final_graph);

/// (result, operand) pairs of ops that may share memory. A fused op is asked for its body's; of
/// equal bodies one is analysed. The ops must live, unchanged, as long as this does.
class InPlacePairs {
 public:
  const std::vector<InPlace>& of(const ir::Op& op);

 private:
  const std::vector<InPlace>* of_body(const ir::Graph& body);

  std::unordered_map<const ir::Op*, const std::vector<InPlace>*> of_op_;  ///< of fused ops
  std::unordered_map<const ir::Op*, std::vector<InPlace>> own_;  ///< of ops that say it themselves
  OpKinds kinds_;
  std::unordered_map<GroupKey, std::vector<InPlace>, GroupKeyHash> of_body_;
};

}  // namespace fluid
