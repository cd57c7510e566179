#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/options.h"
#include "passes/target.h"

namespace fluid {

/// A rewrite of the program. A pass is one file, one line in pipeline.cpp and one .fir test of its
/// name.
struct Pass {
  std::string name;                ///< "append_backward"
  std::string doc;                 ///< one sentence
  std::vector<std::string> needs;  ///< facts that must hold before: "typed"
  std::vector<std::string> gives;  ///< facts that hold after
  bool (*run)(ir::Program&, const Options&, const Target&);  ///< returns whether it changed
};

/// All passes, by name.
const std::vector<Pass>& all_passes();

/// The passes that compile a recorded program, in order (pipeline.cpp).
std::vector<Pass> pipeline(const Options& options);

/// The passes that compile a startup_program(), in order.
std::vector<Pass> startup_pipeline(const Options& options);

struct PassReport {
  std::string pass;
  bool changed = false;
  double ms = 0;         ///< time of the pass
  double verify_ms = 0;  ///< time of the verification after it
  std::string dump;      ///< the changed lines, if requested
};

/// Explains why `passes` cannot run in this order and names the missing pass. "" if the order is
/// valid.
std::string order_fault(const std::vector<Pass>& passes);

/// Checks the order by order_fault(), then runs and times `passes`. Verifies the program after each
/// pass that changed it (see Options::verify_each). `dump`: fill PassReport::dump.
std::vector<PassReport> run_passes(ir::Program& program, const std::vector<Pass>& passes,
                                   const Options& options, const Target& target, bool dump = false);

}  // namespace fluid
