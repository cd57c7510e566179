#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/options.h"
#include "passes/target.h"

namespace fluid {

/// One rewrite of the program. One file a pass, one line in pipeline.cpp, one .fir test of its
/// name.
struct Pass {
  std::string name;                ///< "append_backward"
  std::string doc;                 ///< one sentence
  std::vector<std::string> needs;  ///< facts that must hold before: "typed"
  std::vector<std::string> gives;  ///< facts that hold after
  bool (*run)(ir::Program&, const Options&, const Target&);  ///< whether it changed anything
};

/// All passes, by name.
const std::vector<Pass>& all_passes();

/// The passes that make an executable of a recorded program, in order (pipeline.cpp).
std::vector<Pass> pipeline(const Options& options);

/// The same of a startup_program().
std::vector<Pass> startup_pipeline(const Options& options);

struct PassReport {
  std::string pass;
  bool changed = false;
  double ms = 0;         ///< of the pass
  double verify_ms = 0;  ///< of what checked the program after it
  std::string dump;      ///< the changed part, when asked for
};

/// Why `passes` cannot run in this order, and which pass is lacking; "" when they can.
std::string order_fault(const std::vector<Pass>& passes);

/// Runs `passes` in order: checks needs, verifies after each that changed something (see
/// Options::verify_each), times, dumps on request.
std::vector<PassReport> run_passes(ir::Program& program, const std::vector<Pass>& passes,
                                   const Options& options, const Target& target, bool dump = false);

}  // namespace fluid
