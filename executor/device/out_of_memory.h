#pragma once

#include <string>

#include "ir/error.h"

namespace fluid {

/// Thrown when the place, or the host beside it, has too little memory. The device is still usable:
/// a smaller request may succeed.
class OutOfMemory : public DeviceError {
 public:
  explicit OutOfMemory(const std::string& what) : DeviceError(what), lack_(what) {}
  /// `lack`: what could not be allocated. `advice`: what the user can do.
  OutOfMemory(const std::string& lack, const std::string& advice)
      : DeviceError(lack + ": " + advice), lack_(lack) {}
  const std::string& lack() const { return lack_; }

 private:
  std::string lack_;
};

}  // namespace fluid
