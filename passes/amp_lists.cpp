#include "passes/amp_lists.h"

#include <algorithm>
#include <set>

#include "ops/no_amp.h"
#include "ops/table.h"
#include "passes/amp_cast.h"

namespace fluid {
namespace {

bool is_in_layer(const std::string& scope, const std::string& layer) {
  return scope == layer || scope.starts_with(layer + ".");
}

/// How specifically a listed name matches `op`: the length of a layer's name, 0 for the op's name.
/// The longest match wins.
std::optional<size_t> fit(const std::string& name, const ir::Op& op) {
  if (is_in_layer(op.scope, name)) return name.size();
  if (op.name == name) return 0;
  return std::nullopt;
}

/// Names of all layers of the graph, including the enclosing layers.
std::set<std::string> layers_of(const ir::Graph& graph) {
  std::set<std::string> layers;
  for (const auto& op : graph.ops) {
    for (size_t end = op->scope.find('.'); end != std::string::npos;
         end = op->scope.find('.', end + 1)) {
      layers.insert(op->scope.substr(0, end));
    }
    if (!op->scope.empty()) layers.insert(op->scope);
  }
  return layers;
}

}  // namespace

std::optional<AmpOverride> amp_override(const ir::Op& op, const AmpOptions& options) {
  if (op.attrs.get_or(kNoAmp, false)) return AmpOverride{DType::f32, "scope: NoAmp"};
  // Ops that update variables keep their precision: they are not compute-bound.
  if (std::holds_alternative<Updates>(*def_of(op).effects)) return std::nullopt;
  std::optional<AmpOverride> wish;
  size_t best = 0;
  const auto look_in = [&](const std::vector<std::string>& names, DType dtype) {
    for (const std::string& name : names) {
      const std::optional<size_t> found = fit(name, op);
      if (!found || (wish && *found <= best)) continue;
      best = *found;
      wish = AmpOverride{dtype, "list: " + name};
    }
  };
  look_in(options.in_f32, DType::f32);
  look_in(options.in_half, options.dtype);
  return wish;
}

void check_amp_names(const ir::Graph& recorded, const AmpOptions& options) {
  const std::set<std::string> layers = layers_of(recorded);
  std::vector<std::string> known(layers.begin(), layers.end());
  for (const auto& op : recorded.ops) known.push_back(op->name);
  for (const auto* names : {&options.in_f32, &options.in_half}) {
    for (const std::string& name : *names) {
      if (layers.contains(name) || find_op(name) != nullptr) continue;
      throw UserError("mixed precision: '" + name +
                      "' is neither an op nor a layer of the program" + did_you_mean(name, known));
    }
  }
  for (const std::string& name : options.in_f32) {
    if (std::ranges::find(options.in_half, name) == options.in_half.end()) continue;
    throw UserError("mixed precision: '" + name + "' is to run in f32 and in half");
  }
}

}  // namespace fluid
