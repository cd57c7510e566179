#pragma once

// The parts of a `scan` op. Its operands are the initial carries, the sequences and the captures.
// Its results are the final carries and the stacked results. Operand i is argument i of the body.
// For a sequence, the argument is one element, whose type lacks the leading dimension. The outputs
// of the body are the next carries and the values to stack.

#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Maximum number of steps of a scan. The limit bounds the memory of a GPU executable, which
/// unrolls all steps.
inline constexpr int64_t kMaxScanSteps = 1'000'000;

bool is_scan(const ir::Op& op);

struct ScanParts {
  ir::Graph* body = nullptr;
  size_t carries = 0;    ///< number of carries
  size_t sequences = 0;  ///< number of sequences
  /// Number of steps. 0 means the leading extent of the sequences, which depends on kLength.
  int64_t steps = 1;
  bool reverse = false;  ///< whether the first step reads the last element of each sequence

  size_t captures_begin() const { return carries + sequences; }
  bool is_sequence(size_t operand) const {
    return operand >= carries && operand < captures_begin();
  }
};
ScanParts scan_parts(const ir::Op& scan);
/// Number of steps of `scan`: a constant, or an extent that depends on kLength.
Dim step_count(const ir::Op& scan);

/// Appends a scan to `graph` and returns the scan. Operand i is argument i of the body.
ir::Op* append_scan(ir::Graph& graph, Values operands, const ScanParts& parts, const Loc& loc);

/// Type of a sequence of `steps` elements of type `element`.
Type sequence_type(const Type& element, Dim steps);

/// Appends an `arg` op to a body graph.
Value append_argument(ir::Graph& body, size_t index, const Type& type);
/// The arguments of a body graph, by operand. Null for an operand that the body does not read.
Values arguments_of(const ir::Graph& body, size_t operands);

/// Whether `graph`, the main graph of a program, is the body of a scan. No other main graph
/// contains `arg` ops.
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

/// Throws UserError unless the types of the body match the operands and results of `scan`. Also
/// throws UserError if an op of the body has side effects or draws random numbers.
void verify_scan(const ir::Op& scan);

}  // namespace fluid
