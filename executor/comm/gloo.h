#pragma once

#include "executor/comm/communicator.h"

namespace fluid::comm {

/// Connects the ranks of `world` by Gloo, as make_communicator() does. `world` must have several
/// ranks.
std::unique_ptr<Communicator> make_gloo(const World& world, std::chrono::milliseconds timeout);

}  // namespace fluid::comm
