#pragma once

#include <gtest/gtest.h>

#include <string>

#include "executor/device/out_of_memory.h"

namespace fluid {

/// Returns OutOfMemory::failed_allocation() of the error that `call` is expected to throw.
template <class F>
std::string lack_of(F call) {
  try {
    call();
  } catch (const OutOfMemory& e) {
    EXPECT_NE(std::string(e.what()).find(", or free "), std::string::npos) << e.what();
    return e.failed_allocation();
  }
  ADD_FAILURE() << "memory was there";
  return "";
}

}  // namespace fluid
