#include "passes/half_weights.h"

#include <map>

#include "ops/operators.h"
#include "ops/parameter_cast.h"
#include "ops/random/initializer.h"
#include "ops/record.h"
#include "passes/pass.h"
#include "passes/rewrite.h"
#include "passes/select_recipe.h"

namespace fluid {
namespace {

constexpr std::string_view kHalfSuffix = ".half";

/// Replaces each cast of a parameter to half precision by a read of a state, the half-precision
/// copy of the parameter. Returns a map from the name of each parameter to its copy.
std::map<std::string, Value> read_copies(ir::Graph& graph, DType half) {
  std::map<std::string, Value> copies;
  rewrite_ops(graph, [&](ir::Op& op) {
    const ir::Op* parameter = parameter_of_cast(op);
    if (parameter == nullptr || op.results[0].type.dtype != half) return Values();
    Value& copy = copies[parameter->symbol];
    if (!copy) {
      copy = record_source(graph, "state", half_weight_name(parameter->symbol), op.results[0].type,
                           {{kScratchAttribute, true}}, op.loc);
    }
    return Values{copy};
  });
  return copies;
}

/// Adds the missing half-precision copies of f32 parameters that this recipe updates and the loss
/// of another recipe reads. The program of the other recipe may read these copies.
void add_updated_copies(ir::Graph& graph, DType half, std::map<std::string, Value>& copies) {
  std::vector<ir::Op*> updated;
  for (const auto& op : graph.ops) {
    ir::Op* parameter = is_store(*op) ? graph.find("param", op->symbol) : nullptr;
    if (parameter == nullptr || parameter->result().dtype() != f32) continue;
    if (parameter->attrs.get_or(kReadByOtherRecipes, false)) updated.push_back(parameter);
  }
  for (ir::Op* parameter : updated) {
    Value& copy = copies[parameter->symbol];
    if (copy) continue;
    const Type type{half, parameter->result().shape(), {}};
    copy = record_source(graph, "state", half_weight_name(parameter->symbol), type,
                         {{kScratchAttribute, true}}, parameter->loc);
  }
}

/// Adds stores that write the new value of each parameter to its half-precision copy. A skipped
/// step stores the old value again.
void write_copies(ir::Graph& graph, const std::map<std::string, Value>& copies) {
  const size_t end = graph.ops.size();
  for (size_t i = move_stores_last(graph); i < end; ++i) {
    const ir::Op& store = *graph.ops[i];
    const auto copy = copies.find(store.symbol);
    if (copy == copies.end()) continue;
    ir::ScopedRecording as(graph, {ir::Role::optimize, store.loc, store.scope, store.symbol});
    const Value updated = cast(store.operands[0], copy->second.dtype());
    record_store(graph, copy->second.op()->symbol, updated, store.loc);
  }
  move_stores_last(graph);
}

bool run_half_weights(ir::Program& program, const Options& options, const Target&) {
  if (!options.amp || !options.amp->has_half_weights()) return false;
  auto copies = read_copies(program.main(), options.amp->dtype);
  add_updated_copies(program.main(), options.amp->dtype, copies);
  write_copies(program.main(), copies);
  return !copies.empty();
}

}  // namespace

std::string half_weight_name(std::string_view parameter) {
  return std::string(parameter) + std::string(kHalfSuffix);
}

std::optional<std::string_view> parameter_of_half_weight(std::string_view name) {
  if (!name.ends_with(kHalfSuffix)) return std::nullopt;
  return name.substr(0, name.size() - kHalfSuffix.size());
}

Pass half_weights_pass() {
  return {.name = "half_weights",
          .doc = "Mixed precision O2: keeps half-precision weights beside the f32 master weights.",
          .needs = {"typed"},
          .provides = {},
          .run = run_half_weights};
}

}  // namespace fluid
