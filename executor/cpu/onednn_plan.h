#pragma once

#include <dnnl.hpp>
#include <optional>
#include <vector>

#include "passes/target.h"

namespace fluid {

/// A bias and a relu that follow an op.
struct OnednnEpilogue {
  std::optional<Type> bias;  ///< a vector, one a channel
  bool relu = false;
};

/// What a library kernel is to do, with concrete types in the layouts they have.
struct OnednnTask {
  const ir::Op& op;
  std::vector<Type> operands;
  Type result;
  OnednnEpilogue epilogue;
  bool widened =
      false;  ///< the tensors are f16 and are copied to f32, which the types say, and back
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
};

dnnl::engine& onednn_engine();
/// The attributes that every primitive has: memory of ours for its scratch, and the relu.
dnnl::primitive_attr onednn_attributes(const OnednnEpilogue& epilogue);

/// Empty when oneDNN has no kernel for the task.
std::optional<OnednnPlan> plan_conv2d(const OnednnTask& task);
std::optional<OnednnPlan> plan_conv2d_grad_input(const OnednnTask& task);
std::optional<OnednnPlan> plan_conv2d_grad_filter(const OnednnTask& task);
/// The same by Winograd's algorithm: 3x3 filters and stride 1, in blocked layouts of its own.
std::optional<OnednnPlan> plan_conv2d_winograd(const OnednnTask& task);
std::optional<OnednnPlan> plan_conv2d_grad_input_winograd(const OnednnTask& task);
std::optional<OnednnPlan> plan_conv2d_grad_filter_winograd(const OnednnTask& task);
std::optional<OnednnPlan> plan_matmul(const OnednnTask& task);

}  // namespace fluid
