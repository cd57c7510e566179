#pragma once

#include <dnnl.hpp>
#include <optional>
#include <vector>

#include "passes/target.h"

namespace fluid {

/// A bias and a relu that follow an op.
struct OnednnEpilogue {
  std::optional<Type> bias;  ///< of `channels` elements
  bool relu = false;
};

/// What a library kernel is to do, with concrete types.
struct OnednnTask {
  const ir::Op& op;
  std::vector<Type> operands;
  Type result;
  OnednnEpilogue epilogue;
  bool choose_layouts = false;  ///< else those of the types are used
};

/// A primitive and the memory it wants.
struct OnednnPlan {
  struct Arg {
    int id;  ///< DNNL_ARG_SRC, ...
    dnnl::memory::desc desc;
  };
  dnnl::primitive primitive;
  std::vector<Arg> args;  ///< operands, then the bias, then the result
  dnnl::memory::desc workspace;
  std::string implementation;
  std::vector<Type> types;  ///< of the operands and the result, in the chosen layouts
};

dnnl::engine& onednn_engine();

/// Empty when oneDNN has no kernel for the task.
std::optional<OnednnPlan> plan_conv2d(const OnednnTask& task);
std::optional<OnednnPlan> plan_conv2d_grad_input(const OnednnTask& task);
std::optional<OnednnPlan> plan_conv2d_grad_filter(const OnednnTask& task);
std::optional<OnednnPlan> plan_matmul(const OnednnTask& task);

/// The attributes that every primitive has: our workspace, and the relu.
dnnl::primitive_attr onednn_attributes(const OnednnEpilogue& epilogue);

}  // namespace fluid
