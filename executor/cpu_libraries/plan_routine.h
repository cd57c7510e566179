#pragma once

#include <memory>
#include <utility>

#include "executor/cpu_libraries/library.h"

namespace fluid {

/// Returns the routine of a kernel of our own. Each binding makes a Call(*plan, buffers,
/// workspace), which refers to the plan, and Call::run() computes.
template <class Call, class Plan>
LibraryRoutine plan_routine(std::shared_ptr<const Plan> plan) {
  const int64_t workspace = plan->workspace();
  LibraryBinder bind = [plan = std::move(plan)](void* const* buffers, void* memory) -> LibraryCall {
    auto call = std::make_shared<Call>(*plan, buffers, memory);
    return {.run = [plan, call] { call->run(); }};
  };
  return {std::move(bind), workspace};
}

}  // namespace fluid
