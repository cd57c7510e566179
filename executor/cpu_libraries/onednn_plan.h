#pragma once

#include <dnnl.hpp>
#include <optional>
#include <vector>

#include "executor/cpu_libraries/onednn_shards.h"
#include "executor/device/library_task.h"
#include "passes/memory_plan.h"

namespace fluid {

/// A task for oneDNN. If `widened`, the tensors are f16 and are converted to f32 and back; the
/// types say f32.
struct OnednnTask : LibraryTask {
  bool widened = false;
};

/// A primitive and its memory descriptors.
struct OnednnPlan {
  struct Arg {
    int id;                     ///< DNNL_ARG_SRC, ...
    dnnl::memory::desc wanted;  ///< chosen by the primitive
    dnnl::memory::desc given;   ///< from the types; reordered if it differs from `wanted`
  };
  dnnl::primitive primitive;
  std::vector<Arg> args;  ///< operands, then the bias, then the result
  dnnl::memory::desc workspace;
  std::string implementation;
  std::shared_ptr<const OnednnShards> slices = {};  ///< replaces `primitive`, unless null

  int64_t workspace_bytes() const {
    return slices ? slices->workspace() : aligned(workspace.get_size());
  }
};

/// Predicted cost of entering the library and a parallel region.
inline constexpr double kLibraryCallSeconds = 4e-6;

dnnl::engine& onednn_engine();
/// Returns the attributes of a primitive: scratch memory provided by the caller, and the relu.
dnnl::primitive_attr onednn_attributes(const Epilogue& epilogue);

/// Throws DeviceError if `status` is an error.
void check_onednn(dnnl_status_t status);
/// Executes a primitive. Throws DeviceError when it fails.
void run_onednn(const_dnnl_primitive_t primitive, const dnnl::stream& stream,
                const std::vector<dnnl_exec_arg_t>& args);

/// The plans return nullopt when oneDNN has no kernel for the task.
std::optional<OnednnPlan> plan_conv2d(const OnednnTask& task);
std::optional<OnednnPlan> plan_conv2d_grad_input(const OnednnTask& task);
std::optional<OnednnPlan> plan_conv2d_grad_filter(const OnednnTask& task);
std::optional<OnednnPlan> plan_matmul(const OnednnTask& task);

}  // namespace fluid
