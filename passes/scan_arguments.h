#pragma once

#include <set>
#include <vector>

#include "ops/scan.h"

namespace fluid {

/// Collects the arguments of a scan's body while a pass records the body. The numbers of the
/// arguments are known only at the end, because carries precede sequences, and sequences precede
/// captures.
class ScanArguments {
 public:
  /// Starts without arguments.
  explicit ScanArguments(ir::Graph& body) : body_(body) {}
  /// Starts with the arguments of `scan`.
  explicit ScanArguments(const ir::Op& scan);

  /// Each appends an argument for `operand`, a value of the outer graph, and returns the argument.
  Value add_carry(Value operand) { return add(carries_, operand, operand.type()); }
  Value add_sequence(Value operand);
  Value add_capture(Value operand) { return add(captures_, operand, operand.type()); }

  /// The sequence, an operand of the scan, whose elements `argument` stands for; null if `argument`
  /// stands for no element.
  Value sequence_of(Value argument) const;

  /// Moves the arguments to the start of the body and numbers them. Leaves out the sequences and
  /// captures that are not in `live`, the ops that the outputs of the body need. Returns the
  /// operands of the scan, and sets the numbers of carries and sequences in `parts`.
  Values finish(ScanParts& parts, const std::set<const ir::Op*>& live);

 private:
  struct Argument {
    Value argument;  ///< null if the body does not read the carry
    Value operand;
  };
  Value add(std::vector<Argument>& to, Value operand, const Type& type);

  ir::Graph& body_;
  std::vector<Argument> carries_, sequences_, captures_;
};

/// Gives `scan` the operands that correspond to `arguments`, and erases the ops of the body that no
/// output needs.
void set_arguments(ir::Op& scan, ScanArguments& arguments);

}  // namespace fluid
