#pragma once

#include <dnnl.hpp>
#include <optional>
#include <vector>

#include "executor/cpu_libraries/onednn_shards.h"
#include "executor/device/library_task.h"
#include "passes/memory_plan.h"

namespace fluid {

struct OnednnTask : LibraryTask {
  /// Dtype of a half-precision op that is computed in f32. The types in this task are then f32. The
  /// operands are converted to f32 before the primitive runs, and the result is converted back
  /// afterwards.
  std::optional<DType> widened_from = {};
};

/// A oneDNN primitive and its memory descriptors.
struct OnednnPlan {
  struct Arg {
    int id;                       ///< oneDNN's argument index, such as DNNL_ARG_SRC
    dnnl::memory::desc required;  ///< layout that the primitive requires
    /// Layout of the op's tensor. The tensor is reordered if this layout differs from `required`.
    dnnl::memory::desc actual;
  };
  dnnl::primitive primitive;
  std::vector<Arg> args;  ///< operands, then the bias, then the result
  dnnl::memory::desc scratchpad;
  std::string implementation;  ///< oneDNN's name for the implementation of the primitive
  /// Shards that run instead of `primitive`; null if `primitive` runs.
  std::shared_ptr<const OnednnShards> shards = {};

  int64_t workspace_bytes() const {
    return shards ? shards->workspace() : align_up(scratchpad.get_size());
  }
};

/// Returns oneDNN's CPU engine. All calls in the process share this engine.
dnnl::engine& onednn_engine();
/// Returns the attributes of a primitive. The caller provides the scratchpad. A relu in the
/// epilogue becomes a post-op.
dnnl::primitive_attr onednn_attributes(const Epilogue& epilogue);

/// Throws DeviceError if `status` is an error.
void check_onednn(dnnl_status_t status);
/// Executes a primitive. Throws DeviceError on failure.
void run_onednn(const_dnnl_primitive_t primitive, const dnnl::stream& stream,
                const std::vector<dnnl_exec_arg_t>& args);

// Each function returns the plan of a task, or nullopt if oneDNN has no kernel for the task.
std::optional<OnednnPlan> plan_conv2d(const OnednnTask& task);
std::optional<OnednnPlan> plan_conv2d_grad_input(const OnednnTask& task);
std::optional<OnednnPlan> plan_conv2d_grad_filter(const OnednnTask& task);
std::optional<OnednnPlan> plan_matmul(const OnednnTask& task);
/// A matrix product whose second operand has the layout that oneDNN prefers.
struct PackedMatmul {
  Type weights;  ///< type of the second operand
  int64_t workspace_bytes = 0;
};
/// Returns nullopt if oneDNN prefers the plain layout, if the second operand is no matrix, or if
/// class Layout cannot represent the layout.
std::optional<PackedMatmul> packed_matmul(const OnednnTask& task);
// For 8-bit integers. These functions return nullopt, too, if the CPU has no instructions for
// products of 8-bit integers: without them oneDNN's sums of pairs of products saturate.
std::optional<OnednnPlan> plan_conv2d_int8(const OnednnTask& task);
std::optional<OnednnPlan> plan_matmul_int8(const OnednnTask& task);

}  // namespace fluid
