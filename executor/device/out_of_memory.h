#pragma once

#include <string>

#include "ir/error.h"

namespace fluid {

/// A place, or the host beside it, has less memory than was asked for. Nothing is wrong with it:
/// what needs less may fit.
class OutOfMemory : public DeviceError {
 public:
  explicit OutOfMemory(const std::string& what) : DeviceError(what), lack_(what) {}
  /// `lack`: what there is no memory for; `advice`: what can be done.
  OutOfMemory(const std::string& lack, const std::string& advice)
      : DeviceError(lack + ": " + advice), lack_(lack) {}
  const std::string& lack() const { return lack_; }

 private:
  std::string lack_;
};

}  // namespace fluid
