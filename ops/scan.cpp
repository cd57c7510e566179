#include "ops/scan.h"

#include <algorithm>
#include <set>

#include "ops/arguments.h"
#include "ops/group.h"
#include "ops/source_kind.h"
#include "ops/table.h"

namespace fluid {
namespace {

template <class What>
void require(bool holds, const ir::Op& op, const What& what) {
  if (!holds) throw UserError(op.loc, op.name + ": " + message_text(what));
}

Type element_type(const Type& sequence) {
  return {sequence.dtype, Shape(sequence.shape.begin() + 1, sequence.shape.end()), {}};
}

/// Only captures may have a layout.
Type argument_type(const ir::Op& scan, const ScanParts& parts, size_t operand) {
  if (operand >= parts.captures_begin()) return scan.operands.at(operand).type();
  const Type given = without_layout(scan.operands.at(operand).type());
  return parts.is_sequence(operand) ? element_type(given) : given;
}

int64_t index_of(const ir::Op& argument) { return argument.attrs.get<int64_t>("index"); }

bool is_argument(const ir::Op& op) { return source_kind(op) == SourceKind::argument; }

void verify_counts(const ir::Op& scan, const ScanParts& parts) {
  const auto carries = scan.attrs.get<int64_t>("carries");
  const auto sequences = scan.attrs.get<int64_t>("sequences");
  const auto count = static_cast<int64_t>(scan.operands.size());
  require(carries >= 0 && sequences >= 0 && carries <= count && sequences <= count - carries, scan,
          [&] {
            return std::to_string(carries) + " carries and " + std::to_string(sequences) +
                   " sequences are not the first of " + std::to_string(count) + " operands";
          });
  const Dim steps = step_count(scan);
  require(steps.has_length() || (steps.size >= 1 && steps.size <= kMaxScanSteps), scan, [&] {
    return "takes 1 to " + std::to_string(kMaxScanSteps) + " steps, not " + steps.str();
  });
  for (size_t i = parts.carries; i < parts.captures_begin(); ++i) {
    const Type& type = scan.operands[i].type();
    const bool fits = type.shape.rank() >= 1 && type.shape[0] == steps;
    require(fits, scan, [&] {
      return "sequence " + std::to_string(i - parts.carries) + " is " + type.str() +
             ": its first dimension is not the number of steps, " + steps.str();
    });
  }
}

void verify_argument(const ir::Op& scan, const ScanParts& parts, const ir::Op& argument) {
  const int64_t index = index_of(argument);
  require(index >= 0 && index < static_cast<int64_t>(scan.operands.size()), scan, [&] {
    return "its body reads operand " + std::to_string(index) + " of " +
           std::to_string(scan.operands.size());
  });
  const Type given = argument_type(scan, parts, static_cast<size_t>(index));
  const Type& taken = argument.results.at(0).type;
  require(taken == given, scan, [&] {
    return "its body takes operand " + std::to_string(index) + " as " + taken.str() +
           ", which is " + given.str();
  });
}

/// Returns the reason why scans do not support `op`, or "" if they do.
std::string unsupported_reason(const ir::Op& op) {
  const OpDef& def = op_named(op.name, op.loc);
  if (std::holds_alternative<Random>(*def.effects)) {
    return "draws random numbers: draw them outside the scan, as a sequence";
  }
  if (std::holds_alternative<GradientsOp>(*def.lower)) return "takes gradients";
  if (def.inference != nullptr) return "computes other values in training than in inference";
  const bool computes = !std::holds_alternative<Source>(*def.lower) &&
                        !std::holds_alternative<Store>(*def.lower) &&
                        !std::holds_alternative<Directive>(*def.lower);
  const bool pure = std::holds_alternative<Pure>(*def.effects);
  return computes && pure ? "" : "has side effects or is an input of the program";
}

void verify_outputs(const ir::Op& scan, const ScanParts& parts) {
  const std::vector<ir::Output>& outputs = parts.body->outputs;
  require(outputs.size() >= parts.carries, scan, [&] {
    return "its body computes " + std::to_string(outputs.size()) + " values for " +
           std::to_string(parts.carries) + " carries";
  });
  for (size_t i = 0; i < parts.carries; ++i) {
    const Type next = without_layout(outputs[i].value.type());
    const Type given = without_layout(scan.operands[i].type());
    require(next == given, scan, [&] {
      return "carry " + std::to_string(i) + " begins as " + given.str() + ", but a step makes it " +
             next.str();
    });
  }
}

}  // namespace

bool is_scan(const ir::Op& op) { return std::holds_alternative<Scan>(*def_of(op).lower); }

ScanParts scan_parts(const ir::Op& scan) {
  const std::string& name = scan.attrs.get<GraphRef>("body").name;
  ir::Graph* body = scan.graph()->program().find(name);
  require(body != nullptr, scan, [&] { return "there is no graph '" + name + "'"; });
  return {.body = body,
          .carries = static_cast<size_t>(scan.attrs.get<int64_t>("carries")),
          .sequences = static_cast<size_t>(scan.attrs.get<int64_t>("sequences")),
          .steps = scan.attrs.get<int64_t>("steps"),
          .reverse = scan.attrs.get<bool>("reverse")};
}

Dim step_count(const ir::Op& scan) {
  const ScanParts parts = scan_parts(scan);
  if (parts.steps != 0 || parts.sequences == 0) return parts.steps;
  const Shape& sequence = scan.operands.at(parts.carries).shape();
  const bool symbolic = !sequence.empty() && sequence[0].has_length() && !sequence[0].batch;
  return symbolic ? sequence[0] : Dim(0);
}

ir::Op* append_scan(ir::Graph& graph, Values operands, const ScanParts& parts, const Loc& loc) {
  const Attrs attrs = {{"body", GraphRef{parts.body->name}},
                       {"carries", static_cast<int64_t>(parts.carries)},
                       {"sequences", static_cast<int64_t>(parts.sequences)},
                       {"steps", parts.steps},
                       {"reverse", parts.reverse}};
  ir::Op* scan = graph.append("scan", std::move(operands), attrs, {}, loc);
  for (Type& type : infer_scan(*scan)) scan->results.push_back({std::move(type), ""});
  return scan;
}

Type sequence_type(const Type& element, Dim steps) {
  Type type = without_layout(element);
  type.shape.insert(type.shape.begin(), steps);
  return type;
}

Value append_argument(ir::Graph& body, size_t index, const Type& type) {
  return body.append("arg", {}, {{"index", static_cast<int64_t>(index)}}, {type})->result();
}

Values arguments_of(const ir::Graph& body, size_t operands) {
  Values arguments(operands);
  for (const auto& op : body.ops) {
    if (is_argument(*op)) arguments.at(static_cast<size_t>(index_of(*op))) = op->result();
  }
  return arguments;
}

bool is_scan_body(const ir::Graph& graph) {
  return std::ranges::any_of(graph.ops, [](const auto& op) { return is_argument(*op); });
}

std::vector<ir::Graph*> scan_bodies(const ir::Graph& graph) {
  std::vector<ir::Graph*> bodies;
  for (const auto& op : graph.ops) {
    if (!is_scan(*op)) continue;
    bodies.push_back(scan_parts(*op).body);
    const std::vector<ir::Graph*> inner = scan_bodies(*bodies.back());
    bodies.insert(bodies.end(), inner.begin(), inner.end());
  }
  return bodies;
}

bool set_argument_types(const ir::Op& scan) {
  const ScanParts parts = scan_parts(scan);
  verify_counts(scan, parts);
  bool changed = false;
  for (const auto& op : parts.body->ops) {
    if (!is_argument(*op)) continue;
    Type& type = op->results.at(0).type;
    const Type given = argument_type(scan, parts, static_cast<size_t>(index_of(*op)));
    changed |= type != given;
    type = given;
  }
  return changed;
}

std::vector<Type> infer_scan(const ir::Op& scan) {
  const ScanParts parts = scan_parts(scan);
  const Dim steps = step_count(scan);
  std::vector<Type> types;
  for (const ir::Output& o : parts.body->outputs) {
    const bool carry = types.size() < parts.carries;
    types.push_back(carry ? without_layout(o.value.type()) : sequence_type(o.value.type(), steps));
  }
  return types;
}

bool checks_data(const ir::Op& op) {
  if (!is_scan(op)) return !checked_operands(op).empty();
  return std::ranges::any_of(scan_parts(op).body->ops,
                             [](const auto& inner) { return checks_data(*inner); });
}

void verify_scan(const ir::Op& scan) {
  const ScanParts parts = scan_parts(scan);
  verify_counts(scan, parts);
  std::set<int64_t> indices;
  for (const auto& op : parts.body->ops) {
    if (is_argument(*op)) {
      const bool first = indices.insert(index_of(*op)).second;
      require(first, scan, [&] {
        return "two arguments of its body stand for operand " + std::to_string(index_of(*op));
      });
      verify_op(*op);
      verify_argument(scan, parts, *op);
      continue;
    }
    const std::string reason = unsupported_reason(*op);
    require(reason.empty(), scan, [&] {
      return "its body holds " + op->name + (op->loc.is_known() ? " of " + op->loc.str() : "") +
             ", which " + reason;
    });
  }
  verify_outputs(scan, parts);
  const std::vector<Type> given = without_layouts(result_types(scan)), made = infer_scan(scan);
  require(made == given, scan, [&] {
    return "results are given as " + to_string(given) + " but its body makes " + to_string(made);
  });
}

}  // namespace fluid
