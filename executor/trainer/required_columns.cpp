#include "executor/trainer/required_columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "ir/error.h"
#include "ops/optim/recipes.h"
#include "ops/source_kind.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

/// Throws UserError if `data` has no column for a feed on which a value of `roots` depends.
void check_columns(const Values& roots, const SampleData& data) {
  for (const ir::Op* op : ancestors(roots)) {
    if (source_kind(*op) != SourceKind::feed || data.find(op->symbol) != nullptr) continue;
    std::vector<std::string> columns;
    for (const Column& column : data.columns()) columns.push_back("'" + column.name + "'");
    throw UserError(op->loc, fmt::format("feed '{}' is missing: the data '{}' has {}", op->symbol,
                                         data.name(), fmt::join(columns, ", ")));
  }
}

}  // namespace

void check_training_columns(const Program& program, const RecipeCycle& cycle,
                            const SampleData& data) {
  const ir::Graph& graph = program.ir().main();
  // A step of one recipe of several computes no output that reads other feeds than its loss.
  Values roots = recipes_of(graph).size() == 1 ? output_values(graph) : Values();
  for (const FitRecipe& recipe : cycle.recipes()) {
    roots.push_back(recipe_named(graph, recipe.name).operands.at(0));
  }
  check_columns(roots, data);
}

void check_evaluation_columns(const Program& program, const SampleData& data) {
  check_columns(output_values(program.ir().main()), data);
}

}  // namespace fluid
