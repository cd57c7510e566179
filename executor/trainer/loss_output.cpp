#include "executor/trainer/loss_output.h"

#include "passes/rewrite.h"

namespace fluid {

std::string loss_output(const Program& program) {
  const ir::Graph& graph = program.ir().main();
  const ir::Op* train = find_directive(graph);
  for (const ir::Output& o : graph.outputs) {
    if (train != nullptr && o.value == train->operands.at(0)) return o.name;
  }
  return "";
}

}  // namespace fluid
