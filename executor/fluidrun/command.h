#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace fluid {

/// What the chosen subcommand does once the command line is parsed; returns the exit code.
using Action = std::function<int()>;

// Each adds one subcommand to `app`, which sets `action` when it is chosen. One file a subcommand.

void add_bench(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);
void add_devices(CLI::App& app, Action& action);
void add_eval(CLI::App& app, Action& action);
/// `program` is what follows "--": a command line that is not this program's.
void add_launch(CLI::App& app, Action& action, std::vector<std::string> program);
void add_man(CLI::App& app, Action& action);
void add_opt(CLI::App& app, Action& action);
void add_plan(CLI::App& app, Action& action);
void add_predict(CLI::App& app, Action& action);

void add_run(CLI::App& app, Action& action);
void add_show(CLI::App& app, Action& action);
void add_summary(CLI::App& app, Action& action);
void add_train(CLI::App& app, Action& action);
void add_verify(CLI::App& app, Action& action);

}  // namespace fluid
