#pragma once

#include "executor/options/executor_options.h"

namespace fluid {

inline constexpr int kMostThreads = 4096;

/// Throws UserError for an option out of its range, and for options that exclude each other.
void check_options(const ExecutorOptions& options);

/// Throws UserError for invalid AmpOptions.
void check_amp(const ExecutorOptions& options);

/// Throws UserError for options that exclude sync_bn.
void check_sync_bn(const ExecutorOptions& options);

}  // namespace fluid
