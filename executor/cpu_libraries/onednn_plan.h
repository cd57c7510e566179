#pragma once

#include <dnnl.hpp>
#include <optional>
#include <vector>

#include "executor/cpu_libraries/onednn_shards.h"
#include "executor/device/library_task.h"
#include "passes/memory_plan.h"

namespace fluid {

/// A LibraryTask whose dtypes oneDNN supports.
struct OnednnTask : LibraryTask {
  /// The op's tensors are f16 and the types of the task are f32: operands are converted before the
  /// primitive runs, the result afterwards.
  bool widened = false;
};

/// A oneDNN primitive and its memory descriptors.
struct OnednnPlan {
  struct Arg {
    int id;                     ///< oneDNN's argument index, such as DNNL_ARG_SRC
    dnnl::memory::desc wanted;  ///< layout that the primitive requires
    /// Layout of the op's tensor, which is reordered if not equal to `wanted`.
    dnnl::memory::desc given;
  };
  dnnl::primitive primitive;
  std::vector<Arg> args;  ///< operands, then the bias, then the result
  dnnl::memory::desc workspace;
  std::string implementation;  ///< oneDNN's name of the kernel's implementation
  /// Shards that run instead of `primitive`; null: none.
  std::shared_ptr<const OnednnShards> shards = {};

  int64_t workspace_bytes() const {
    return shards ? shards->workspace() : align_up(workspace.get_size());
  }
};

/// Predicted overhead of a library call that runs one parallel region.
inline constexpr double kLibraryCallSeconds = 4e-6;

/// The process's CPU engine.
dnnl::engine& onednn_engine();
/// Returns the attributes of a primitive: the caller provides the scratchpad, and a relu in the
/// epilogue becomes a post-op.
dnnl::primitive_attr onednn_attributes(const Epilogue& epilogue);

/// Throws DeviceError if `status` is an error.
void check_onednn(dnnl_status_t status);
/// Executes a primitive. Throws DeviceError when it fails.
void run_onednn(const_dnnl_primitive_t primitive, const dnnl::stream& stream,
                const std::vector<dnnl_exec_arg_t>& args);

// Each function creates the plan of a task. Returns nullopt if oneDNN has no kernel for the task.
std::optional<OnednnPlan> plan_conv2d(const OnednnTask& task);
std::optional<OnednnPlan> plan_conv2d_grad_input(const OnednnTask& task);
std::optional<OnednnPlan> plan_conv2d_grad_filter(const OnednnTask& task);
std::optional<OnednnPlan> plan_matmul(const OnednnTask& task);

}  // namespace fluid
