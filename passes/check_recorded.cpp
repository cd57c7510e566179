#include "passes/check_recorded.h"

#include <set>

#include "ops/optim/recipes.h"
#include "ops/random/initializer.h"
#include "ops/scan.h"
#include "ops/source_kind.h"
#include "ops/table.h"
#include "passes/amp_cast.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

// Maximum size of a value in bytes. The limit prevents overflow of int64_t size arithmetic.
constexpr int64_t kMaxValueBytes = int64_t{1} << 46;

void require(bool holds, const ir::Op& op, const std::string& what) {
  if (!holds) throw UserError(op.loc, op.name + ": " + what);
}

void check_made_by_user(const ir::Program& program, const ir::Op& op) {
  const Lower& lower = *def_of(op).lower;
  const bool in_main = op.graph() == &program.main();
  const bool made = std::holds_alternative<FusedOp>(lower) ||
                    std::holds_alternative<CollectiveOp>(lower) ||
                    (source_kind(op) == SourceKind::argument && in_main) ||
                    source_kind(op) == SourceKind::carried || is_carry(op);
  require(!made, op,
          "only the compiler records this op; '" + program.name + "' is partly compiled");
  for (const std::string_view stage : {"arena", "workspace", "part_of", "error_sync", "group"}) {
    require(!op.attrs.has(stage), op,
            "has the attribute '" + std::string(stage) + "' of a partly compiled program");
  }
}

void check_store(const std::map<std::string_view, ir::Op*>& variables, const ir::Op& store) {
  const auto variable = variables.find(store.symbol);
  require(variable != variables.end(), store, "there is no variable '" + store.symbol + "'");
  const Type& given = store.operands.at(0).type();
  const Type& type = variable->second->results.at(0).type;
  require(given == type, store,
          "writes " + given.str() + " into '" + store.symbol + "', which is " + type.str());
}

void check_size(const ir::Op& op, const Options& options) {
  for (const ir::Result& r : op.results) {
    const bool has_length = r.type.shape.has_length();
    const auto bytes = r.type.at_length(options.sequence_length).checked_bytes_at(options.batch);
    require(bytes && *bytes <= kMaxValueBytes, op,
            "a value " + r.type.str() + " with a batch of " + std::to_string(options.batch) +
                (has_length ? " and the length " + std::to_string(options.sequence_length) : "") +
                " is larger than any memory");
  }
}

bool run_check_recorded(ir::Program& program, const Options& options, const Target&) {
  const ir::Graph& graph = program.main();
  check_is_recorded(program);
  if (options.amp) check_amp_names(graph, *options.amp);
  const auto variables = variables_by_name(graph);
  for (const ir::Graph* body : scan_bodies(graph)) {
    for (const auto& op : body->ops) check_size(*op, options);
  }
  for (const auto& op : graph.ops) {
    check_size(*op, options);
    require(!is_variable(*op) || op->symbol != kRandomState ||
                op->results.at(0).type == Type{i64, {3}, {}},
            *op, "'rng' is the name of the random state, i64[3]");
    require(source_kind(*op) != SourceKind::parameter || !op->attrs.has(kCacheAttribute), *op,
            "a parameter cannot be a cache");
    const OpDef& def = def_of(*op);
    if (std::holds_alternative<Store>(*def.lower)) check_store(variables, *op);
  }
  for (const ir::Op* recipe : recipes_of(graph)) {
    require(recipe->operands.size() == 1, *recipe, "only the compiler gives it gradients");
  }
  check_recipes(graph);
  return false;
}

}  // namespace

void check_is_recorded(const ir::Program& program) {
  std::set<const ir::Graph*> recorded = {&program.main()};
  for (const auto& op : program.main().ops) check_made_by_user(program, *op);
  for (const ir::Graph* body : scan_bodies(program.main())) {
    if (!recorded.insert(body).second)
      throw UserError("two scans have the body '" + body->name + "'");
    for (const auto& op : body->ops) check_made_by_user(program, *op);
  }
  for (const auto& graph : program.graphs) {
    if (recorded.contains(graph.get())) continue;
    throw UserError("program '" + program.name + "' is partly compiled: it has a graph '" +
                    graph->name + "' besides main");
  }
}

Pass check_recorded_pass() {
  return {.name = "check_recorded",
          .doc = "Rejects programs that are partly compiled, or that have too large values.",
          .needs = {},
          .provides = {},
          .run = run_check_recorded};
}

}  // namespace fluid
