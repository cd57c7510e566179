#pragma once

#include <dnnl.hpp>
#include <optional>
#include <vector>

#include "executor/cpu/onednn_slices.h"
#include "executor/device/library_task.h"
#include "passes/memory_plan.h"

namespace fluid {

/// A task for oneDNN; a widened one's tensors are f16 and are copied to f32, which the types say,
/// and back.
struct OnednnTask : LibraryTask {
  bool widened = false;
};

/// A primitive and the memory it wants.
struct OnednnPlan {
  struct Arg {
    int id;                     ///< DNNL_ARG_SRC, ...
    dnnl::memory::desc wanted;  ///< by the primitive
    dnnl::memory::desc given;   ///< by the types; reordered when it differs
  };
  dnnl::primitive primitive;
  std::vector<Arg> args;  ///< operands, then the bias, then the result
  dnnl::memory::desc workspace;
  std::string implementation;
  std::shared_ptr<const OnednnSlices> slices = {};  ///< what runs in the primitive's place, if any

  int64_t workspace_bytes() const {
    return slices ? slices->workspace() : aligned(workspace.get_size());
  }
};

/// Of a prediction: entering the library and a parallel region.
inline constexpr double kLibraryCallSeconds = 4e-6;

dnnl::engine& onednn_engine();
/// The attributes that every primitive has: memory of ours for its scratch, and the relu.
dnnl::primitive_attr onednn_attributes(const Epilogue& epilogue);

/// Throws DeviceError for a failure.
void check_onednn(dnnl_status_t status);
/// Throws DeviceError when it fails.
void run_onednn(const_dnnl_primitive_t primitive, const dnnl::stream& stream,
                const std::vector<dnnl_exec_arg_t>& args);

/// Empty when oneDNN has no kernel for the task.
std::optional<OnednnPlan> plan_conv2d(const OnednnTask& task);
std::optional<OnednnPlan> plan_conv2d_grad_input(const OnednnTask& task);
std::optional<OnednnPlan> plan_conv2d_grad_filter(const OnednnTask& task);
std::optional<OnednnPlan> plan_matmul(const OnednnTask& task);

}  // namespace fluid
