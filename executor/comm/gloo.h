#pragma once

#include "executor/comm/communicator.h"

namespace fluid::comm {

/// The Gloo communicator of a world of several processes; see make_communicator().
std::unique_ptr<Communicator> make_gloo(const World& world, std::chrono::milliseconds timeout);

}  // namespace fluid::comm
