#pragma once

#include <map>
#include <string>

#include "executor/options/executor_options.h"
#include "executor/options/place.h"
#include "ir/graph.h"

namespace fluid {

/// What changes the bits of a result, as text, by its name. `threads`: the host's.
std::map<std::string, std::string> result_options(const ir::Program& recorded,
                                                  const ExecutorOptions& options, Place place,
                                                  int threads);

/// changes() of such options, of a checkpoint and of the run that goes on from it. What a place
/// has, as threads or a workspace, is left out where places differ, and where the checkpoint is
/// from before that was told, as is one that names no place: it is of a CPU.
std::string changed_results(std::map<std::string, std::string> before,
                            std::map<std::string, std::string> now);

}  // namespace fluid
