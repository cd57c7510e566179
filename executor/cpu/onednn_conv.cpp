#include "executor/cpu/onednn_memory.h"
#include "executor/cpu/onednn_plan.h"
#include "ops/nn/window.h"

namespace fluid {
namespace {

using dnnl::algorithm;
using dnnl::prop_kind;
using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

/// The types of a convolution, whichever of them the op computes, as oneDNN takes them.
struct Problem {
  Desc x, w, y;
  Dims strides, dilations, before, after;

  Problem(const OnednnTask& task, const Type& x_type, const Type& w_type, const Type& y_type)
      : x(desc(task, x_type)), w(filter(task, w_type)), y(desc(task, y_type)) {
    const Window2d window = window_of(task.op.attrs, w_type.shape[2].size, w_type.shape[3].size);
    for (const WindowAxis& axis : {window.y, window.x}) {
      strides.push_back(axis.stride);
      dilations.push_back(axis.dilation - 1);
      before.push_back(axis.before);
      after.push_back(axis.after);
    }
  }

  static Desc desc(const OnednnTask& task, const Type& type) {
    return task.choose_layouts ? onednn_any(type) : onednn_desc(type);
  }
  /// oneDNN's grouped filters have a dimension more; ours are their plain bytes.
  static Desc filter(const OnednnTask& task, const Type& type) {
    const auto groups = task.op.attrs.get<int64_t>("groups");
    if (groups == 1) return desc(task, type);
    const Shape& s = type.shape;
    return onednn_desc({type.dtype, {groups, s[0].size / groups, s[1], s[2], s[3]}, {}});
  }

  dnnl::convolution_forward::desc forward(prop_kind kind, const Desc& bias) const {
    return {kind, algorithm::convolution_direct, x, w, bias, y, strides, dilations, before, after};
  }
};

/// `type` as it lies in `desc`; empty when a Layout cannot say it.
std::optional<Type> chosen(const OnednnTask& task, const Type& type, const Desc& desc) {
  if (!task.choose_layouts) return type;
  if (static_cast<size_t>(desc.data.ndims) != type.shape.size()) return type;
  return with_onednn_layout(type, desc);
}

template <class PrimitiveDesc>
std::optional<OnednnPlan> finish(const OnednnTask& task, dnnl::primitive primitive,
                                 const PrimitiveDesc& pd, std::vector<OnednnPlan::Arg> args,
                                 const std::vector<Desc>& descs) {
  OnednnPlan plan{
      std::move(primitive), std::move(args), pd.scratchpad_desc(), pd.impl_info_str(), {}};
  for (size_t i = 0; i < descs.size(); ++i) {
    const Type& wanted = i < task.operands.size() ? task.operands[i] : task.result;
    const std::optional<Type> type = chosen(task, wanted, descs[i]);
    if (!type) return std::nullopt;
    plan.types.push_back(*type);
  }
  return plan;
}

}  // namespace

std::optional<OnednnPlan> plan_conv2d(const OnednnTask& task) {
  const Problem p(task, task.operands[0], task.operands[1], task.result);
  const auto& bias = task.epilogue.bias;
  const Desc bias_desc = bias ? onednn_desc(*bias) : Desc();
  const dnnl::convolution_forward::primitive_desc pd(
      p.forward(prop_kind::forward_inference, bias_desc), onednn_attributes(task.epilogue),
      onednn_engine(), true);
  if (!pd) return std::nullopt;
  std::vector<OnednnPlan::Arg> args = {{DNNL_ARG_SRC, pd.src_desc()},
                                       {DNNL_ARG_WEIGHTS, pd.weights_desc()}};
  if (bias) args.push_back({DNNL_ARG_BIAS, bias_desc});
  args.push_back({DNNL_ARG_DST, pd.dst_desc()});
  return finish(task, dnnl::convolution_forward(pd), pd, args,
                {pd.src_desc(), pd.weights_desc(), pd.dst_desc()});
}

std::optional<OnednnPlan> plan_conv2d_grad_input(const OnednnTask& task) {
  const Problem p(task, task.result, task.operands[1], task.operands[0]);
  const dnnl::convolution_forward::primitive_desc hint(
      p.forward(prop_kind::forward_training, Desc()), onednn_attributes({}), onednn_engine(), true);
  if (!hint || task.epilogue.bias || task.epilogue.relu) return std::nullopt;
  const dnnl::convolution_backward_data::primitive_desc pd(
      {algorithm::convolution_direct, p.x, p.w, p.y, p.strides, p.dilations, p.before, p.after},
      onednn_attributes({}), onednn_engine(), hint, true);
  if (!pd) return std::nullopt;
  return finish(task, dnnl::convolution_backward_data(pd), pd,
                {{DNNL_ARG_DIFF_DST, pd.diff_dst_desc()},
                 {DNNL_ARG_WEIGHTS, pd.weights_desc()},
                 {DNNL_ARG_DIFF_SRC, pd.diff_src_desc()}},
                {pd.diff_dst_desc(), pd.weights_desc(), pd.diff_src_desc()});
}

std::optional<OnednnPlan> plan_conv2d_grad_filter(const OnednnTask& task) {
  const Problem p(task, task.operands[0], task.result, task.operands[1]);
  const dnnl::convolution_forward::primitive_desc hint(
      p.forward(prop_kind::forward_training, Desc()), onednn_attributes({}), onednn_engine(), true);
  if (!hint || task.epilogue.bias || task.epilogue.relu) return std::nullopt;
  const dnnl::convolution_backward_weights::primitive_desc pd(
      {algorithm::convolution_direct, p.x, p.w, p.y, p.strides, p.dilations, p.before, p.after},
      onednn_attributes({}), onednn_engine(), hint, true);
  if (!pd) return std::nullopt;
  return finish(task, dnnl::convolution_backward_weights(pd), pd,
                {{DNNL_ARG_SRC, pd.src_desc()},
                 {DNNL_ARG_DIFF_DST, pd.diff_dst_desc()},
                 {DNNL_ARG_DIFF_WEIGHTS, pd.diff_weights_desc()}},
                {pd.src_desc(), pd.diff_dst_desc(), pd.diff_weights_desc()});
}

}  // namespace fluid
