#pragma once

#include <gtest/gtest.h>

#include <string>

#include "executor/device/out_of_memory.h"

namespace fluid {

/// What `call` is expected to have no memory for, and to say what to do about.
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
