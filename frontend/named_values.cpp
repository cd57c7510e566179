#include "frontend/named_values.h"

#include <algorithm>

#include "ir/error.h"
#include "ops/op_def.h"
#include "ops/scan.h"
#include "ops/source/kept_gradient.h"
#include "ops/source_kind.h"
#include "ops/table.h"

namespace fluid {
namespace {

bool computes_value(const ir::Op& op) {
  return op.role == ir::Role::forward && !op.results.empty() &&
         !std::holds_alternative<Source>(*def_of(op).lower);
}

bool is_inside(const ir::Op& op, const std::string& layer) {
  return op.scope == layer || op.scope.starts_with(layer + ".");
}

}  // namespace

void retain_gradient(Program& program, const std::string& name, const Loc& loc) {
  std::vector<std::string> names;
  for (const auto& op : program.ir().main().ops) {
    if (source_kind(*op) != SourceKind::parameter) continue;
    names.push_back(op->symbol);
    if (op->symbol != name) continue;
    if (!op->attrs.get_or("trainable", true) || op->attrs.get_or("sparse", false)) {
      throw UserError(loc,
                      "parameter '" + name + "' is frozen or sparse: it has no dense gradient");
    }
    op->attrs.set(kKeepGradient, true);
    return;
  }
  throw UserError(loc, "no parameter '" + name + "'" + did_you_mean(name, names));
}

Value named_value(Program& program, const std::string& name) {
  if (name.empty()) return {};
  Value of_layer;
  for (const auto& op : program.ir().main().ops) {
    if (!computes_value(*op)) continue;
    for (size_t i = 0; i < op->results.size(); ++i) {
      if (op->results[i].name == name) return op->result(static_cast<int>(i));
    }
    if (is_inside(*op, name)) of_layer = op->result();
  }
  return of_layer;
}

bool is_value_of_scan_step(const Program& program, const std::string& name) {
  const auto has_name = [&](const auto& op) {
    const auto is_named = [&](const ir::Result& r) { return r.name == name; };
    return computes_value(*op) &&
           (is_inside(*op, name) || std::ranges::any_of(op->results, is_named));
  };
  return std::ranges::any_of(scan_bodies(program.ir().main()), [&](const ir::Graph* body) {
    return std::ranges::any_of(body->ops, has_name);
  });
}

std::vector<std::string> value_names(const Program& program) {
  std::vector<std::string> names;
  for (const auto& op : program.ir().main().ops) {
    if (!computes_value(*op)) continue;
    for (const ir::Result& r : op->results) names.push_back(r.name);
    for (size_t end = 0; end < op->scope.size();) {  // adds "block0", then "block0.attention"
      end = std::min(op->scope.find('.', end + 1), op->scope.size());
      names.push_back(op->scope.substr(0, end));
    }
  }
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  std::erase(names, "");
  return names;
}

}  // namespace fluid
