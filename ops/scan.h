#pragma once

// The parts of a `scan` op. Its operands are the initial carries, the sequences and the captures.
// Its results are the final carries and the collected values. Operand i is argument i of the body.
// The body gets one element of a sequence at a time, whose type has no leading dimension. Outputs
// of the body are the next carries and the values to collect.

#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Limit of the number of steps: an executable holds the addresses of each step.
inline constexpr int64_t kMaxScanSteps = 1'000'000;

bool is_scan(const ir::Op& op);

struct ScanParts {
  ir::Graph* body = nullptr;
  size_t carries = 0;    ///< number of carries
  size_t sequences = 0;  ///< number of sequences
  /// Number of steps; 0: the first extent of the sequences, which is a multiple of the length.
  int64_t steps = 1;
  bool reverse = false;  ///< whether the steps begin with the last element of the sequences

  size_t captures_begin() const { return carries + sequences; }
  bool is_sequence(size_t operand) const {
    return operand >= carries && operand < captures_begin();
  }
};
ScanParts scan_parts(const ir::Op& scan);
/// Number of steps of `scan`: a constant, or a multiple of the length.
Dim step_count(const ir::Op& scan);

/// Appends a scan to `graph` and returns it. `operands` correspond to the arguments of the body.
ir::Op* append_scan(ir::Graph& graph, Values operands, const ScanParts& parts, const Loc& loc);

/// Type of a sequence of `steps` elements of type `element`.
Type sequence_type(const Type& element, Dim steps);

/// Appends an `arg` op to a body graph.
Value append_argument(ir::Graph& body, size_t index, const Type& type);
/// The arguments of a body graph, in the order of the operands. Null if the body does not read an
/// operand.
Values arguments_of(const ir::Graph& body, size_t operands);

/// Whether `graph`, which runs as a program, is the body of a scan: it has arguments.
bool is_scan_body(const ir::Graph& graph);
/// The bodies of the scans of `graph`, including nested ones. An outer body precedes its inner
/// bodies.
std::vector<ir::Graph*> scan_bodies(const ir::Graph& graph);

/// Sets the types of the body's arguments to the types of the operands of `scan`. Returns whether a
/// type changed.
bool set_argument_types(const ir::Op& scan);
/// Types of the results of `scan`, from the types of the body's outputs.
std::vector<Type> infer_scan(const ir::Op& scan);

/// Whether `op`, or an op in its body, checks data-dependent indices (see checked_operands()).
bool checks_data(const ir::Op& op);

/// Throws UserError unless the body takes the operands and computes the results of `scan`, and
/// every op of the body may run in a scan: it has no side effects and draws no random numbers.
void verify_scan(const ir::Op& scan);

}  // namespace fluid
