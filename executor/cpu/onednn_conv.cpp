#include "executor/cpu/onednn_memory.h"
#include "executor/cpu/onednn_plan.h"
#include "ops/nn/window.h"

namespace fluid {
namespace {

using dnnl::prop_kind;
using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

constexpr auto kDirect = dnnl::algorithm::convolution_direct;

/// A tensor's given layout, and the layout that the primitive may choose.
struct Side {
  Desc given, any;

  explicit Side(const Type& type) : given(onednn_desc(type)), any(onednn_any(type)) {}
};

/// Returns the descriptors of an image. If a pass chose its layout, the primitive must use it.
Side image_side(const Type& type) {
  Side side(type);
  if (type.layout) side.any = side.given;
  return side;
}

/// Returns the descriptors of a filter. oneDNN's grouped filters have one more dimension, but the
/// same bytes as our plain filters.
Side filter_side(const Type& type, int64_t groups) {
  if (groups == 1) return Side(type);
  const Shape& s = type.shape;
  Side side({type.dtype, {groups, s[0].size / groups, s[1], s[2], s[3]}, {}});
  side.any = side.given;
  return side;
}

/// A convolution of x with w to y as oneDNN describes it. An op computes one of the three.
struct ConvProblem {
  Side x, w, y;
  Dims strides, dilations, before, after;

  ConvProblem(const ir::Op& op, const Type& x_type, const Type& w_type, const Type& y_type)
      : x(image_side(x_type)),
        w(filter_side(w_type, op.attrs.get<int64_t>("groups"))),
        y(image_side(y_type)) {
    if (y_type.layout && y_type.layout->blocks.empty() && x_type.shape[1].is(1)) {
      // With one channel, y's layout has the bytes of a plain one. oneDNN chooses kernels by the
      // strides.
      x.any = onednn_desc({x_type.dtype, x_type.shape, y_type.layout});
    }
    const Window2d window = window_of(op.attrs, w_type.shape[2].size, w_type.shape[3].size);
    for (const WindowAxis& axis : {window.y, window.x}) {
      strides.push_back(axis.stride);
      dilations.push_back(axis.dilation - 1);
      before.push_back(axis.before);
      after.push_back(axis.after);
    }
  }

  dnnl::convolution_forward::primitive_desc forward(prop_kind kind, const Desc& bias,
                                                    const dnnl::primitive_attr& attributes) const {
    return {{kind, kDirect, x.any, w.any, bias, y.any, strides, dilations, before, after},
            attributes,
            onednn_engine(),
            true};
  }

  /// Returns the forward primitive that backward primitives need as a hint.
  dnnl::convolution_forward::primitive_desc hint() const {
    return forward(prop_kind::forward_training, Desc(), onednn_attributes({}));
  }
};

bool has_epilogue(const OnednnTask& task) { return task.epilogue.bias || task.epilogue.relu; }

}  // namespace

std::optional<OnednnPlan> plan_conv2d(const OnednnTask& task) {
  const ConvProblem p(task.op, task.operands[0], task.operands[1], task.result);
  const auto& bias = task.epilogue.bias;
  const Desc bias_desc = bias ? onednn_desc(*bias) : Desc();
  const auto pd =
      p.forward(prop_kind::forward_inference, bias_desc, onednn_attributes(task.epilogue));
  if (!pd) return std::nullopt;
  std::vector<OnednnPlan::Arg> args = {{DNNL_ARG_SRC, pd.src_desc(), p.x.given},
                                       {DNNL_ARG_WEIGHTS, pd.weights_desc(), p.w.given}};
  if (bias) args.push_back({DNNL_ARG_BIAS, bias_desc, bias_desc});
  args.push_back({DNNL_ARG_DST, pd.dst_desc(), p.y.given});
  return OnednnPlan{dnnl::convolution_forward(pd), args, pd.scratchpad_desc(), pd.impl_info_str()};
}

std::optional<OnednnPlan> plan_conv2d_grad_input(const OnednnTask& task) {
  const ConvProblem p(task.op, task.result, task.operands[1], task.operands[0]);
  const auto hint = p.hint();
  if (!hint || has_epilogue(task)) return std::nullopt;
  const dnnl::convolution_backward_data::primitive_desc pd(
      {kDirect, p.x.any, p.w.any, p.y.any, p.strides, p.dilations, p.before, p.after},
      onednn_attributes({}), onednn_engine(), hint, true);
  if (!pd) return std::nullopt;
  return OnednnPlan{dnnl::convolution_backward_data(pd),
                    {{DNNL_ARG_DIFF_DST, pd.diff_dst_desc(), p.y.given},
                     {DNNL_ARG_WEIGHTS, pd.weights_desc(), p.w.given},
                     {DNNL_ARG_DIFF_SRC, pd.diff_src_desc(), p.x.given}},
                    pd.scratchpad_desc(),
                    pd.impl_info_str()};
}

std::optional<OnednnPlan> plan_conv2d_grad_filter(const OnednnTask& task) {
  const ConvProblem p(task.op, task.operands[0], task.result, task.operands[1]);
  const auto hint = p.hint();
  if (!hint || has_epilogue(task)) return std::nullopt;
  const dnnl::convolution_backward_weights::primitive_desc pd(
      {kDirect, p.x.any, p.w.any, p.y.any, p.strides, p.dilations, p.before, p.after},
      onednn_attributes({}), onednn_engine(), hint, true);
  if (!pd) return std::nullopt;
  const auto slice = [&](const Desc& x, const Desc& dw, const Desc& dy) {
    return OnednnSlices::PrimitiveDesc(
        {kDirect, x, dw, dy, p.strides, p.dilations, p.before, p.after}, onednn_attributes({}),
        onednn_engine(), hint, true);
  };
  return OnednnPlan{dnnl::convolution_backward_weights(pd),
                    {{DNNL_ARG_SRC, pd.src_desc(), p.x.given},
                     {DNNL_ARG_DIFF_DST, pd.diff_dst_desc(), p.y.given},
                     {DNNL_ARG_DIFF_WEIGHTS, pd.diff_weights_desc(), p.w.given}},
                    pd.scratchpad_desc(),
                    pd.impl_info_str(),
                    OnednnSlices::of(pd, slice)};
}

}  // namespace fluid
