#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "executor/fluidrun/command.h"
#include "executor/fluidrun/flags.h"
#include "executor/fluidrun/help.h"
#include "executor/fluidrun/inputs.h"
#include "ops/optim/recipes.h"

namespace fluid {

void add_verify(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("verify", "Check a program file");
  command->footer("Examples:\n  fluidrun verify mnist.fluid");
  const auto name = std::make_shared<std::string>();
  add_program_argument(*command, *name);
  command->callback([&action, name] {
    action = [name] {
      // open_program() verifies everything except the recipes (`train` ops)
      const Program program = open_program(*name);
      check_recipes(program.ir().main());
      size_t ops = 0;
      for (const auto& graph : program.ir().graphs) ops += graph->ops.size();
      fmt::print("{}: good ({} ops in {} graphs)\n", *name, ops, program.ir().graphs.size());
      return 0;
    };
  });
}

}  // namespace fluid
