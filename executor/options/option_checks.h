#pragma once

#include "executor/options/executor_options.h"

namespace fluid {

inline constexpr int kMaxThreads = 4096;

/// Throws UserError for an option that is out of range, and for mutually exclusive options.
void check_options(const ExecutorOptions& options);

/// Throws UserError for invalid AmpOptions.
void check_amp(const ExecutorOptions& options);

/// Throws UserError for options that cannot be combined with sync_bn.
void check_sync_bn(const ExecutorOptions& options);

}  // namespace fluid
