#pragma once

#include <memory>

#include "executor/comm/communicator.h"
#include "executor/device/device.h"
#include "executor/options/executor_options.h"
#include "executor/options/place.h"

namespace fluid {

/// Creates the device of `place`. `communicator`: runs collectives between processes; null in a
/// world of one process. Throws UserError when there is no such GPU.
std::unique_ptr<Device> device_of(Place place, const ExecutorOptions& options,
                                  Communicator* communicator);

}  // namespace fluid
