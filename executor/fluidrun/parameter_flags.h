#pragma once

#include <string>
#include <vector>

#include "frontend/program.h"

namespace CLI {
class App;
}

namespace fluid {

/// Values of --lora, --freeze, --freeze-stats and --param.
struct ParameterFlags {
  std::vector<std::string> lora;               ///< "PATTERN:rank=8,alpha=16"
  std::vector<std::string> freeze;             ///< patterns of parameter names
  std::vector<std::string> freeze_statistics;  ///< patterns of names of running statistics
  std::vector<std::string> groups;             ///< "PATTERN:lr=10,decay=0,train=1"
};
void add_parameter_flags(CLI::App& command, ParameterFlags& flags);

/// Applies --lora, --freeze, --freeze-stats and --param to the program, in this order. Error
/// messages name the flag.
void set_parameters(Program& program, const ParameterFlags& flags);

/// The section "Patterns" of --help.
std::string pattern_help();

}  // namespace fluid
