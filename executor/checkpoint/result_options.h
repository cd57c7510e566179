#pragma once

#include <map>
#include <string>

#include "executor/options/executor_options.h"
#include "executor/options/place.h"
#include "ir/graph.h"

namespace fluid {

/// Returns the options that can change any bit of the results: option name -> value as text.
/// `threads`: number of CPU compute threads.
std::map<std::string, std::string> result_options(const ir::Program& recorded,
                                                  const ExecutorOptions& options, Place place,
                                                  int threads);

/// Lists the options that differ between a checkpoint (`before`) and the current run (`now`): "seed
/// 1 (was 0)". Compares the options threads, tuning and workspace only if both maps have the option
/// and the option "place" is equal. A checkpoint without the option "place" was written on a CPU.
std::string changed_result_options(std::map<std::string, std::string> before,
                                   std::map<std::string, std::string> now);

/// Whether the Plateau schedule of `recipe` has another metric or mode in the current run (`now`)
/// than in the checkpoint (`before`).
bool monitors_other_metric(const std::map<std::string, std::string>& before,
                           const std::map<std::string, std::string>& now,
                           const std::string& recipe);

}  // namespace fluid
