#include "passes/scan_arguments.h"

#include <algorithm>
#include <set>

#include "ops/source_kind.h"
#include "passes/rewrite.h"

namespace fluid {

ScanArguments::ScanArguments(const ir::Op& scan) : body_(*scan_parts(scan).body) {
  const ScanParts parts = scan_parts(scan);
  const Values arguments = arguments_of(body_, scan.operands.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::vector<Argument>& to = i < parts.carries      ? carries_
                                : parts.is_sequence(i) ? sequences_
                                                       : captures_;
    to.push_back({arguments[i], scan.operands[i]});
  }
}

Value ScanArguments::add(std::vector<Argument>& to, Value operand, const Type& type) {
  const Value argument = append_argument(body_, 0, type);
  to.push_back({argument, operand});
  return argument;
}

Value ScanArguments::add_sequence(Value operand) {
  Type element = operand.type();
  element.shape.erase(element.shape.begin());
  return add(sequences_, operand, element);
}

Value ScanArguments::sequence_of(Value argument) const {
  const auto found = std::ranges::find(sequences_, argument, &Argument::argument);
  return found == sequences_.end() ? Value() : found->operand;
}

Values ScanArguments::assign_indices(ScanParts& parts, const std::set<const ir::Op*>& live) {
  std::ranges::stable_partition(
      body_.ops, [](const auto& op) { return source_kind(*op) == SourceKind::argument; });
  Values operands;
  const auto number = [&](const std::vector<Argument>& arguments, bool keep_all) {
    for (const Argument& a : arguments) {
      const bool read = a.argument && live.contains(a.argument.op());
      if (read) a.argument.op()->attrs.set("index", static_cast<int64_t>(operands.size()));
      if (read || keep_all) operands.push_back(a.operand);
    }
  };
  number(carries_, true);
  parts.carries = operands.size();
  number(sequences_, false);
  parts.sequences = operands.size() - parts.carries;
  number(captures_, false);
  return operands;
}

void set_operands(ir::Op& scan, ScanArguments& arguments) {
  ScanParts parts = scan_parts(scan);
  const std::set<const ir::Op*> live = ancestors(output_values(*parts.body));
  scan.operands = arguments.assign_indices(parts, live);
  scan.attrs.set("sequences", static_cast<int64_t>(parts.sequences));
  erase_all_except(*parts.body, live);
}

}  // namespace fluid
