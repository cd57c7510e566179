#pragma once

#include <functional>

#include "executor/session/outputs.h"
#include "frontend/readers/reader.h"

namespace fluid {

/// A callback that gets a batch and the outputs of its step. The outputs are valid during the call.
using BatchObserver = std::function<void(const Batch&, const OutputViews&)>;

}  // namespace fluid
