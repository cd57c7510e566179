#pragma once

#include <memory>

#include "ir/graph.h"
#include "tests/fuzz/fuzz.h"

namespace fluid::fuzz {

/// A valid program of about `ops` ops drawn from the whole op table, most often ops with library
/// kernels. Leaves out ops that record() rejects, which it must do with a UserError.
std::unique_ptr<ir::Program> random_net(Random& random, int ops);

/// A value of the kind of `like`: near it, or one of the kind's extremes.
Attr random_attr(Random& random, const Attr& like);

/// Few dims, small ones mostly; at most one of the batch.
Type random_type(Random& random);

}  // namespace fluid::fuzz
