#pragma once

#include <map>
#include <string>

#include "executor/options/executor_options.h"
#include "executor/options/place.h"
#include "ir/graph.h"

namespace fluid {

/// The options that affect the bits of a result, as text, by name. `threads`: compute threads of
/// the host.
std::map<std::string, std::string> result_options(const ir::Program& recorded,
                                                  const ExecutorOptions& options, Place place,
                                                  int threads);

/// The changes between a checkpoint's options and the current ones, as text. Skips place-specific
/// options (threads, tuning, workspace) when the place differs or one side lacks them. A checkpoint
/// without a place stems from a CPU.
std::string changed_results(std::map<std::string, std::string> before,
                            std::map<std::string, std::string> now);

}  // namespace fluid
