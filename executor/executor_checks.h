#pragma once

#include <optional>

#include "executor/executor.h"

namespace fluid {

inline constexpr int kMostThreads = 4096;

/// Throws UserError for an option out of its range, or options that exclude each other.
void check_options(const ExecutorOptions& options);

/// The same of mixed precision alone.
void check_amp(const ExecutorOptions& options);

/// The first finite element of `value` that a `dtype` would hold as inf.
std::optional<int64_t> first_beyond(const Tensor& value, DType dtype);

/// Throws UserError for a finite element of `value` that a `dtype` would hold as inf; `what` names
/// the tensor.
void check_range(const Tensor& value, DType dtype, const std::string& what);

}  // namespace fluid
