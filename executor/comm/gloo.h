#pragma once

#include "executor/comm/communicator.h"

namespace fluid::comm {

/// A communicator of several processes by Gloo over TCP; see make_communicator.
std::unique_ptr<Communicator> make_gloo(const World& world, std::chrono::milliseconds timeout);

}  // namespace fluid::comm
