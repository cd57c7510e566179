#pragma once

#include <string>

#include "ir/error.h"

namespace fluid {

/// Thrown when the device or the host has too little memory. The device stays usable: a smaller
/// request may succeed.
class OutOfMemory : public DeviceError {
 public:
  explicit OutOfMemory(const std::string& what) : DeviceError(what), failed_allocation_(what) {}
  /// `failed_allocation`: what could not be allocated. `advice`: how the user can avoid the error.
  OutOfMemory(const std::string& failed_allocation, const std::string& advice)
      : DeviceError(failed_allocation + ": " + advice), failed_allocation_(failed_allocation) {}
  const std::string& failed_allocation() const { return failed_allocation_; }

 private:
  std::string failed_allocation_;
};

}  // namespace fluid
