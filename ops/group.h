#pragma once

// What a group of Map and Reduce ops computes when it becomes one kernel. The fusion pass asks
// whether a group is possible, the schedules turn the answer into loops, the memory planner asks
// which buffers may coincide.
//
// Map ops that are not outputs disappear: their bodies are substituted where they are read. What
// remains are *sinks*: outputs and reductions. A reduction read inside the group is read at plain
// loop variables; that ties its variables to its reader's. Sinks tied together form a *part*; parts
// are independent and lie side by side in the kernel. A part sweeps over its *rows*: variables that
// all its sinks have. A reduction over rows is complete only after the sweep; sinks that need it
// run in the *finish*.

#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "ops/op_kinds.h"
#include "ops/table.h"

namespace fluid {

/// A result that is stored, or a reduction.
struct GroupSink {
  const ir::Op* op = nullptr;
  /// For a Map the one stored result's position in Group::outputs; for a reduction one entry a
  /// result, -1 when it is not stored.
  std::vector<int> outputs;
  int result = 0;                  ///< which result of a Map
  std::vector<int64_t> out;        ///< variable of each dim; -1: extent 1, index 0
  std::vector<int64_t> reduce;     ///< variable of each reduced extent; -1: extent 1, index 0
  std::optional<Combine> combine;  ///< of a reduction
  /// Leaves besides constants, batch and variables: `read` (ivalue: position in Group::inputs;
  /// args: an index a dim, then optionally a bool: where false, fvalue), and `let` (see
  /// reduction_of; args: an index a dim) for a reduction's result.
  Expr body;
  bool finish = false;    ///< runs after all blocks
  bool across = false;    ///< a reduction over row variables
  bool consumed = false;  ///< a reduction that a sink of the group reads
  int stage = 0;          ///< order within a row
};

struct GroupPart {
  std::vector<int64_t> rows;  ///< in memory order of the first sink
  std::vector<int> sinks;     ///< in order of dependence
};

struct Group {
  std::vector<Value> inputs;     ///< values from outside, in the given order first
  std::vector<Value> outputs;    ///< as given
  std::vector<Dim> extents;      ///< of the variables
  std::vector<GroupSink> sinks;  ///< a sink comes after those it reads
  std::vector<GroupPart> parts;
};

/// The sink, and which of its results, that a `let` of a group's body stands for.
struct ReductionRead {
  int sink;
  int result;
};
ReductionRead reduction_of(const Expr& let);

/// Whether the op can be part of a group: a Map, a Reduce, or an Alias that only adds or drops dims
/// of extent 1.
bool is_groupable(const ir::Op& op);

/// The operands of a Map or Reduce that it reads at indices from the data, which may be refused,
/// each with the dimension of that index; none for other ops.
std::map<int64_t, size_t> checked_operands(const ir::Op& op);

/// Caches the lowered form of each kind of ops, multiply-adds contracted.
class LoweredOps {
 public:
  const Lowered& of(const ir::Op* op);
  OpKinds kinds;

 private:
  std::unordered_map<int, Lowered> lowered_;  ///< by kind
};

/// Group of `ops` (groupable only, each after those it reads) that yields `outputs` (distinct
/// results of `ops`); `inputs` fixes the order of the first inputs. Null when they do not fit in
/// one kernel. `lowered`, where it is given, outlives several groups of the same ops.
std::optional<Group> analyze_group(std::span<const ir::Op* const> ops,
                                   std::span<const Value> outputs,
                                   std::span<const Value> inputs = {},
                                   LoweredOps* lowered = nullptr);

/// The group of the body of a `fused` op: inputs are the `arg` ops by index. It must fit.
Group analyze_body(const ir::Graph& body);

/// Pairs (output, input) of the fused body whose buffers may be the same memory: every element of
/// the input is read only by the iteration that writes that element of the output.
std::vector<InPlace> in_place_pairs(const ir::Graph& body);
std::vector<InPlace> in_place_pairs(const Group& group);

/// `dim` as an expression: a number, or a multiple of the batch.
Expr extent_expr(const Dim& dim);

}  // namespace fluid
