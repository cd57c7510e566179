#pragma once

// Analysis of a group of Map and Reduce ops that become one kernel. The fusion pass asks whether
// the group fits one kernel. The schedules turn the analysis into loops. The memory planner asks
// which buffers may alias.
//
// Map ops that are not outputs are inlined into their readers. *Sinks* remain: the outputs and the
// reductions. A reduction that a sink reads must be indexed by plain loop variables; analysis then
// unifies its variables with the variables of the reader. Sinks that share variables form a *part*.
// Parts are independent and run side by side in the kernel. A part sweeps over its *rows*: the loop
// variables that all its sinks share. A reduction over row variables is complete only after the
// sweep; sinks that read it run in the *finish*.

#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "ops/op_kinds.h"
#include "ops/table.h"

namespace fluid {

/// A stored result or a reduction.
struct GroupSink {
  const ir::Op* op = nullptr;
  /// Positions in Group::outputs. A Map sink has one entry, its stored result. A reduction has one
  /// entry per result; -1 when the result is not stored.
  std::vector<int> outputs;
  int result = 0;                  ///< index of the stored result of a Map
  std::vector<int64_t> out;        ///< loop variable of each dimension; -1: extent 1, index 0
  std::vector<int64_t> reduce;     ///< loop variable of each reduced extent; -1: extent 1, index 0
  std::optional<Combine> combine;  ///< set for a reduction
  /// Leaves are constants, the batch, loop variables, `read` and `let`. `read`: ivalue is the
  /// position in Group::inputs; args are one index per dimension and an optional bool mask (false
  /// gives fvalue). `let` is the result of a reduction (see reduction_of); args are one index per
  /// dimension.
  Expr body;
  bool finish = false;    ///< runs after the sweep over all blocks
  bool across = false;    ///< a reduction over row variables
  bool consumed = false;  ///< a reduction that another sink of the group reads
  int stage = 0;          ///< position in the order of execution within a row
};

struct GroupPart {
  std::vector<int64_t> rows;  ///< in memory order of the first sink
  std::vector<int> sinks;     ///< in dependency order
};

struct Group {
  std::vector<Value> inputs;     ///< values from outside; first the given `inputs`
  std::vector<Value> outputs;    ///< as passed to analyze_group()
  std::vector<Dim> extents;      ///< of the loop variables
  std::vector<GroupSink> sinks;  ///< in dependency order
  std::vector<GroupPart> parts;
};

/// The reduction result that a `let` node of a sink's body reads: sink id and result index.
struct ReductionRead {
  int sink;
  int result;
};
ReductionRead reduction_of(const Expr& let);

/// Whether the op can be fused: a Map, a Reduce, or an Alias that only adds or drops dimensions of
/// extent 1.
bool is_groupable(const ir::Op& op);

/// Operands that a Map or Reduce reads at data-dependent indices, mapped to the dimension of the
/// data-dependent index. Such a read may reject data. Empty for other ops.
std::map<int64_t, size_t> checked_operands(const ir::Op& op);

/// Caches the lowered form of each kind of op, with multiply-adds contracted.
class LoweredOps {
 public:
  const Lowered& of(const ir::Op* op);
  OpKinds kinds;

 private:
  std::unordered_map<int, Lowered> lowered_;  ///< by kind
};

/// Analyses a group. `ops` must be groupable and in dependency order. `outputs` are distinct
/// results of `ops`. `inputs` fixes the order of the first inputs. `lowered` is an optional cache
/// that several calls share. Returns nullopt when the group does not fit one kernel.
std::optional<Group> analyze_group(std::span<const ir::Op* const> ops,
                                   std::span<const Value> outputs,
                                   std::span<const Value> inputs = {},
                                   LoweredOps* lowered = nullptr);

/// Analyses the body of a `fused` op. Input i is the `arg` op of index i. Throws InternalError when
/// the body does not fit one kernel.
Group analyze_body(const ir::Graph& body);

/// Pairs (output, input) of a fused body whose buffers may alias: an element of the input is read
/// only before, or by, the iteration that overwrites it.
std::vector<InPlace> in_place_pairs(const ir::Graph& body);
std::vector<InPlace> in_place_pairs(const Group& group);

/// `dim` as an expression: a constant, or a multiple of Scalar::batch.
Expr extent_expr(const Dim& dim);

}  // namespace fluid
