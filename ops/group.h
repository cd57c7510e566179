#pragma once

// Analysis of a group of Map and Reduce ops that become one kernel. The fusion pass checks whether
// one kernel can compute a group. The schedules generate loops from the analysis. The memory
// planner finds buffers that may alias.
//
// Map ops that are not outputs are inlined into their users. The remaining ops are the *roots*:
// the outputs and the reductions. A root may read a reduction only at indices that are plain loop
// variables. The analysis unifies these variables with the variables of the reduction. Roots that
// share variables form a *part*. Parts are independent; different blocks of the kernel run them.
// The outer loop of a part, the *sweep*, runs over its *rows*, which are loop variables that all
// its roots share. A reduction over row variables is complete only after the sweep. Roots that read
// such a reduction run in the *finish*, a phase after the sweep.

#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "ops/op_kinds.h"
#include "ops/table.h"

namespace fluid {

/// A root of a group: an output that a Map computes, or a reduction.
struct FusionRoot {
  const ir::Op* op = nullptr;
  /// Indices into Group::outputs. A Map root has one entry. A reduction has one entry per result of
  /// the op; -1 marks a result that is not an output.
  std::vector<int> outputs;
  int result = 0;               ///< for a Map: index of the result of `op` that the root computes
  std::vector<int64_t> out;     ///< loop variable of each result dimension; -1: extent 1
  std::vector<int64_t> reduce;  ///< loop variable of each reduced dimension; -1: extent 1
  std::optional<Combine> combine;  ///< operator of the reduction; nullopt for a Map
  /// The expression that the root computes for one point of its loops. Its leaves are constants,
  /// the batch size, loop variables, `read` nodes and `let` nodes. A `read` node loads from
  /// Group::inputs[ivalue]. Its args are one index per dimension and an optional bool mask; where
  /// the mask is false, the value is fvalue. A `let` node is the result of a reduction (see
  /// reduction_of()). Its args are one index per dimension.
  Expr body;
  bool in_finish_phase = false;  ///< the root runs after the loop over rows
  bool reduces_rows = false;     ///< the root is a reduction over row variables
  bool read_by_root = false;     ///< another root reads the result of this reduction
  int stage = 0;                 ///< roots of lower stages run first within a row
};

/// A connected component of the roots. Two roots are connected if one reads the other, if they
/// share a loop variable, or if they compute results of one op.
struct GroupPart {
  std::vector<int64_t> rows;  ///< row variables, in the dimension order of the first root
  std::vector<int> roots;     ///< indices into Group::roots, in topological order
  /// Whether the part has column reductions: reductions of many rows to few columns that are
  /// adjacent in memory. Their results are complete only after the loop over rows.
  bool has_column_reductions = false;
};

/// A group of Map and Reduce ops that one kernel computes.
struct Group {
  /// Inputs of the kernel. The first ones are the `inputs` of analyze_group().
  std::vector<Value> inputs;
  std::vector<Value> outputs;     ///< values that the kernel stores
  std::vector<Dim> extents;       ///< loop variable -> its extent
  std::vector<FusionRoot> roots;  ///< in topological order
  std::vector<GroupPart> parts;
};

/// The reduction result that a `let` node in the body of a root reads: index of the reduction in
/// Group::roots, and index of the result.
struct ReductionRead {
  int root;
  int result;
};
ReductionRead reduction_of(const Expr& let);

/// Whether the op may be in a group: a Map, a Reduce, or an Alias that only splits dimensions, and
/// inserts or removes dimensions of extent 1.
bool is_groupable(const ir::Op& op);

/// Returns the operands that a Map, Reduce or Loops op reads at data-dependent indices. An
/// out-of-range index sets the error word. Each map entry is {operand number, dimension with the
/// data-dependent index}. If an operand has several such dimensions, the second value is its rank.
/// The map is empty for other ops.
std::map<int64_t, size_t> checked_operands(const ir::Op& op);

/// Cache of lowered ops, with multiply-adds contracted to fmas. Ops of one kind (see OpKinds) share
/// an entry.
class LoweringCache {
 public:
  const Lowered& lower(const ir::Op* op);
  OpKinds kinds;

 private:
  std::unordered_map<int, Lowered> lowered_;  ///< OpKinds::kind_id() -> lowered op
};

/// Analyses a group of ops. `ops` must be groupable (see is_groupable()) and in topological order.
/// `outputs` are distinct results of `ops`. `inputs` become the first entries of Group::inputs.
/// `cache` is optional; several calls can share it. Returns nullopt when one kernel cannot compute
/// the group.
std::optional<Group> analyze_group(std::span<const ir::Op* const> ops,
                                   std::span<const Value> outputs,
                                   std::span<const Value> inputs = {},
                                   LoweringCache* cache = nullptr);

/// Analyses the body of a `fused` op. Group::inputs[i] is the result of the `arg` op whose
/// attribute `index` is i. Throws InternalError when one kernel cannot compute the body.
Group analyze_fused_body(const ir::Graph& body);

/// Returns the pairs (output, input) of a fused body that may share a buffer. In such a pair, no
/// iteration overwrites an element of the input that a later iteration reads.
std::vector<InPlace> in_place_pairs(const ir::Graph& body);
std::vector<InPlace> in_place_pairs(const Group& group);

/// Returns `dim` as an expression: a constant, or a multiple of ScalarOp::batch.
Expr extent_expr(const Dim& dim);

}  // namespace fluid
