#pragma once

#include "ir/error.h"

namespace fluid {

/// A place, or the host beside it, has less memory than was asked for. Nothing is wrong with it:
/// what needs less may fit.
class OutOfMemory : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

}  // namespace fluid
