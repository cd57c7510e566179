#pragma once

#include <memory>

#include "executor/comm/communicator.h"
#include "executor/device/device.h"
#include "executor/options/executor_options.h"
#include "executor/options/place.h"

namespace fluid {

/// The device of a place that Fluid knows by name. `communicator`: what the processes that train
/// together sum by; null in a world of one. Throws UserError when there is no such GPU.
std::unique_ptr<Device> device_of(Place place, const ExecutorOptions& options,
                                  Communicator* communicator);

}  // namespace fluid
