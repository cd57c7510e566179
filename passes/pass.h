#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/options.h"
#include "passes/target.h"

namespace fluid {

/// A compiler pass: a rewrite of the program. To add a pass, add a file, a line in pipeline.cpp and
/// a .fir test with the name of the pass.
struct Pass {
  std::string name;  ///< such as "append_backward"
  std::string doc;   ///< description in one sentence
  /// Properties that the program must have before the pass, such as "typed".
  std::vector<std::string> needs;
  std::vector<std::string> provides;  ///< properties that the program has after the pass
  /// Rewrites the program. Returns whether the program changed.
  bool (*run)(ir::Program&, const Options&, const Target&);
};

/// All passes of the compiler, to be looked up by Pass::name.
const std::vector<Pass>& all_passes();

/// The passes that compile a recorded program, in order (pipeline.cpp).
std::vector<Pass> pipeline(const Options& options);

/// The last passes of pipeline(), in execution order. They choose kernels, fuse ops, order the
/// kernels and plan memory.
std::vector<Pass> kernel_pipeline(const Options& options);

/// The passes that compile a startup_program(), in order.
std::vector<Pass> startup_pipeline(const Options& options);

struct PassReport {
  std::string pass;
  bool changed = false;
  double ms = 0;         ///< time of the pass in ms
  double verify_ms = 0;  ///< time of the verifier after the pass, in ms
  std::string dump;      ///< line_diff() of the program before and after the pass, if requested
};

/// Error message if a pass needs a property that no earlier pass provides, else "". The message
/// names a pass that provides the property.
std::string order_error(const std::vector<Pass>& passes);

/// Runs and times `passes`, in order. Throws if order_error() is not empty. Verifies the program
/// after each pass that changed it (see Options::verify_each). `dump`: whether to fill
/// PassReport::dump.
std::vector<PassReport> run_passes(ir::Program& program, const std::vector<Pass>& passes,
                                   const Options& options, const Target& target, bool dump = false);

}  // namespace fluid
