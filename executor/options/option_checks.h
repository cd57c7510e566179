#pragma once

#include "executor/options/executor_options.h"

namespace fluid {

inline constexpr int kMostThreads = 4096;

/// Throws UserError for an option out of its range, or options that exclude each other.
void check_options(const ExecutorOptions& options);

/// Throws UserError for mixed precision that cannot be.
void check_amp(const ExecutorOptions& options);

/// Throws UserError for options that do not go with statistics shared by processes.
void check_shared_statistics(const ExecutorOptions& options);

}  // namespace fluid
