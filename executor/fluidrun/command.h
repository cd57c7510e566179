#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace fluid {

/// Runs the subcommand on the command line. Returns the exit code of fluidrun.
using Action = std::function<int()>;

// Each function adds one subcommand to `app`. If the command line names the subcommand, parsing
// sets `action` to run it. Each subcommand has its own file.

void add_bench(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);
void add_data(CLI::App& app, Action& action);
void add_devices(CLI::App& app, Action& action);
void add_eval(CLI::App& app, Action& action);
/// Adds `launch`. `program`: the arguments after "--", which fluidrun does not parse.
void add_launch(CLI::App& app, Action& action, std::vector<std::string> program);
void add_man(CLI::App& app, Action& action);
void add_merge(CLI::App& app, Action& action);
void add_opt(CLI::App& app, Action& action);
void add_plan(CLI::App& app, Action& action);
void add_predict(CLI::App& app, Action& action);
void add_quantize(CLI::App& app, Action& action);
void add_run(CLI::App& app, Action& action);
void add_show(CLI::App& app, Action& action);
void add_summary(CLI::App& app, Action& action);
void add_train(CLI::App& app, Action& action);
void add_verify(CLI::App& app, Action& action);

}  // namespace fluid
