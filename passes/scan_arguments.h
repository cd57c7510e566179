#pragma once

#include <set>
#include <vector>

#include "ops/scan.h"

namespace fluid {

/// Collects the arguments of a scan's body while a pass records the body. Arguments get their
/// indices only at the end, because carries precede sequences, and sequences precede captures.
class ScanArguments {
 public:
  /// Contains no arguments initially.
  explicit ScanArguments(ir::Graph& body) : body_(body) {}
  /// Contains the arguments of `scan` initially.
  explicit ScanArguments(const ir::Op& scan);

  /// These functions append an argument for `operand`, a value of the outer graph, and return the
  /// argument.
  Value add_carry(Value operand) { return add(carries_, operand, operand.type()); }
  Value add_sequence(Value operand);
  Value add_capture(Value operand) { return add(captures_, operand, operand.type()); }

  /// The sequence operand of the scan whose elements `argument` represents. Null if `argument`
  /// represents a carry or a capture.
  Value sequence_of(Value argument) const;

  /// Moves the arguments to the start of the body and sets their indices. Drops sequences and
  /// captures whose arguments are not in `live`: the ops on which the outputs of the body depend.
  /// Sets the numbers of carries and sequences in `parts`. Returns the operands of the scan.
  Values assign_indices(ScanParts& parts, const std::set<const ir::Op*>& live);

 private:
  struct Argument {
    Value argument;  ///< null if the body does not read the carry
    Value operand;
  };
  Value add(std::vector<Argument>& to, Value operand, const Type& type);

  ir::Graph& body_;
  std::vector<Argument> carries_, sequences_, captures_;
};

/// Sets the operands of `scan` to the operands of `arguments`. Erases dead ops from the body.
void set_operands(ir::Op& scan, ScanArguments& arguments);

}  // namespace fluid
