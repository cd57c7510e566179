#pragma once

#include <cstdint>
#include <vector>

#include "executor/executor.h"
#include "frontend/readers/reader.h"
#include "ir/graph.h"

namespace fluid {

struct ActivationRange {
  double low = 0, high = 0;  ///< smallest and largest value, extended to include 0
};

/// Runs the inference form of `program`, with the parameters of `executor`, on at most `batches`
/// batches of `data`. Returns the range of each of `activations`, which are f32 values of
/// `program`. Throws UserError if a range is not finite, or if an activation needs a feed that
/// `data` lacks.
std::vector<ActivationRange> measure_ranges(Executor& executor, const ir::Program& program,
                                            const Values& activations, Reader& data,
                                            int64_t batches);

}  // namespace fluid
