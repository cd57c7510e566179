#include "executor/cpu_libraries/onednn_plan.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "executor/cpu_libraries/onednn_memory.h"
#include "ops/nn/window.h"

namespace fluid {
namespace {

using dnnl::prop_kind;
using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

constexpr auto kDirect = dnnl::algorithm::convolution_direct;

/// Two memory descriptors of a tensor. `actual` has the tensor's own layout. `any` lets the
/// primitive choose the layout.
struct TensorDescs {
  Desc actual, any;

  explicit TensorDescs(const Type& type) : actual(onednn_desc(type)), any(onednn_any_desc(type)) {}
};

/// Returns the memory descriptors of a batch of images. If `type` has a layout, `any` is `actual`,
/// so that the primitive uses this layout.
TensorDescs image_descs(const Type& type) {
  TensorDescs descs(type);
  if (type.layout) descs.any = descs.actual;
  return descs;
}

/// Returns the descriptors of a filter. oneDNN gives the filter of a grouped convolution an
/// additional group axis, which does not change the order of the elements in memory.
TensorDescs filter_descs(const Type& type, int64_t groups) {
  if (groups == 1) return TensorDescs(type);
  const Shape& s = type.shape;
  return TensorDescs({type.dtype, {groups, s[0].size / groups, s[1], s[2], s[3]}, {}});
}

/// oneDNN's parameters for y = conv(x, w) with images x and filters w. An op computes y, or the
/// gradient with respect to x or w.
struct ConvProblem {
  TensorDescs x, w, y;
  Dims strides, dilations, before, after;

  ConvProblem(const ir::Op& op, const Type& x_type, const Type& w_type, const Type& y_type)
      : x(image_descs(x_type)),
        w(filter_descs(w_type, op.attrs.get<int64_t>("groups"))),
        y(image_descs(y_type)) {
    if (y_type.layout && y_type.layout->blocks.empty() && x_type.shape[1].is(1)) {
      // With one channel, nchw and nhwc are the same in memory. Use y's layout for x, because
      // oneDNN selects kernels by strides.
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

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

/// Views a row-major tensor as a matrix: flattens all axes except the last into rows.
Type folded(const Type& t) {
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < t.shape.size(); ++d) rows *= t.shape[d].size;
  return {t.dtype, {rows, t.shape.back()}, {}};
}

Desc matrix(const Type& t, bool transposed) {
  Dims dims, strides(t.shape.size());
  for (const Dim& d : t.shape) dims.push_back(d.size);
  int64_t stride = 1;
  for (size_t d = dims.size(); d-- > 0; stride *= dims[d]) strides[d] = stride;
  if (transposed) {
    std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
    std::swap(strides[dims.size() - 1], strides[dims.size() - 2]);
  }
  return Desc(dims, *onednn_dtype(t.dtype), strides);
}

/// Returns the type of a matrix with its axes swapped. The elements keep their places in memory.
Type with_swapped_axes(Type t) {
  std::swap(t.shape[0], t.shape[1]);
  if (!t.layout) return t;
  for (int& axis : t.layout->order) axis = 1 - axis;
  for (Layout::Block& block : t.layout->blocks) block.axis = 1 - block.axis;
  return t;
}

/// The second operand of a product, as oneDNN describes it.
Desc right_matrix(const Type& b, bool transposed) {
  if (!b.layout) return matrix(b, transposed);
  return onednn_desc(transposed ? with_swapped_axes(b) : b);
}

bool same_batch(const Shape& a, const Shape& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end() - 2, b.begin());
}

/// The operands and the result of a matrix product, as oneDNN describes them.
struct MatmulProblem {
  Desc src, weights, bias, dst;

  dnnl::matmul::desc desc(const Desc& weights_of) const {
    return bias ? dnnl::matmul::desc(src, weights_of, bias, dst)
                : dnnl::matmul::desc(src, weights_of, dst);
  }
};

std::optional<MatmulProblem> matmul_problem(const OnednnTask& task) {
  const bool transpose_a = task.op.attrs.get<bool>("transpose_a");
  Type a = task.operands[0], y = task.result;
  const Type& b = task.operands[1];
  if (a.layout || y.layout || b.shape.size() < 2) return std::nullopt;
  if (b.shape.size() == 2 && a.shape.size() > 2 && !transpose_a) {
    a = folded(a);
    y = folded(y);
  }
  if (!same_batch(a.shape, b.shape)) return std::nullopt;
  MatmulProblem problem{matrix(a, transpose_a),
                        right_matrix(b, task.op.attrs.get<bool>("transpose_b")),
                        {},
                        matrix(y, false)};
  if (task.epilogue.bias) {
    Type row = y;
    for (size_t d = 0; d + 1 < row.shape.size(); ++d) row.shape[d] = 1;
    problem.bias = matrix(row, false);
  }
  return problem;
}

/// The vectors of the epilogue of a product of 8-bit integers, as operands of post-ops.
struct VectorPostOps {
  dnnl::primitive_attr attributes;
  std::vector<OnednnPlan::Arg> args;
};

/// `rank`: rank of the result. `channel_axis`: axis of the channels, counted from the end. Scale
/// and bias are post-ops, because oneDNN's own scales must be known when the primitive is created.
VectorPostOps vector_post_ops(const OnednnTask& task, size_t rank, size_t channel_axis) {
  VectorPostOps result{onednn_attributes({}), {}};
  dnnl::post_ops post;
  const auto append = [&](dnnl::algorithm algorithm, const std::optional<Type>& vector) {
    if (!vector) return;
    Shape shape(rank, Dim(1));
    shape[rank - channel_axis] = vector->shape[0];
    const Desc desc = onednn_desc({vector->dtype, shape, {}});
    const int id = DNNL_ARG_ATTR_MULTIPLE_POST_OP(post.len()) | DNNL_ARG_SRC_1;
    post.append_binary(algorithm, desc);
    result.args.push_back({id, desc, desc});
  };
  append(dnnl::algorithm::binary_mul, task.epilogue.scale);
  append(dnnl::algorithm::binary_add, task.epilogue.bias);
  if (task.epilogue.relu) post.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
  result.attributes.set_post_ops(post);
  return result;
}

/// Whether the sum of `products` products of `x`, i8 or u8, and i8 fits in the 32-bit integers in
/// which oneDNN adds them up.
bool sums_fit(int64_t products, DType x) {
  const int64_t largest = (x == DType::u8 ? 255 : 128) * int64_t{128};
  return products <= std::numeric_limits<int32_t>::max() / largest;
}

/// Returns `plan` if its implementation multiplies 8-bit integers with instructions that do not
/// saturate.
std::optional<OnednnPlan> checked_int8_plan(OnednnPlan plan) {
  const bool exact = plan.implementation.find("vnni") != std::string::npos ||
                     plan.implementation.find("amx") != std::string::npos;
  if (!exact) return std::nullopt;
  return plan;
}

}  // namespace

std::optional<OnednnPlan> plan_conv2d(const OnednnTask& task) {
  const ConvProblem p(task.op, task.operands[0], task.operands[1], task.result);
  const auto& bias = task.epilogue.bias;
  const Desc bias_desc = bias ? onednn_desc(*bias) : Desc();
  const auto pd =
      p.forward(prop_kind::forward_inference, bias_desc, onednn_attributes(task.epilogue));
  if (!pd) return std::nullopt;
  std::vector<OnednnPlan::Arg> args = {{DNNL_ARG_SRC, pd.src_desc(), p.x.actual},
                                       {DNNL_ARG_WEIGHTS, pd.weights_desc(), p.w.actual}};
  if (bias) args.push_back({DNNL_ARG_BIAS, bias_desc, bias_desc});
  args.push_back({DNNL_ARG_DST, pd.dst_desc(), p.y.actual});
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
                    {{DNNL_ARG_DIFF_DST, pd.diff_dst_desc(), p.y.actual},
                     {DNNL_ARG_WEIGHTS, pd.weights_desc(), p.w.actual},
                     {DNNL_ARG_DIFF_SRC, pd.diff_src_desc(), p.x.actual}},
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
  const auto make_shard = [&](const Desc& x, const Desc& dw, const Desc& dy) {
    return OnednnShards::PrimitiveDesc(
        {kDirect, x, dw, dy, p.strides, p.dilations, p.before, p.after}, onednn_attributes({}),
        onednn_engine(), hint, true);
  };
  return OnednnPlan{dnnl::convolution_backward_weights(pd),
                    {{DNNL_ARG_SRC, pd.src_desc(), p.x.actual},
                     {DNNL_ARG_DIFF_DST, pd.diff_dst_desc(), p.y.actual},
                     {DNNL_ARG_DIFF_WEIGHTS, pd.diff_weights_desc(), p.w.actual}},
                    pd.scratchpad_desc(),
                    pd.impl_info_str(),
                    OnednnShards::create(pd, make_shard)};
}

std::optional<OnednnPlan> plan_matmul(const OnednnTask& task) {
  const std::optional<MatmulProblem> p = matmul_problem(task);
  if (!p) return std::nullopt;
  const dnnl::matmul::primitive_desc pd(p->desc(p->weights), onednn_attributes(task.epilogue),
                                        onednn_engine(), true);
  if (!pd) return std::nullopt;
  std::vector<OnednnPlan::Arg> args = {{DNNL_ARG_SRC, p->src, p->src},
                                       {DNNL_ARG_WEIGHTS, p->weights, p->weights}};
  if (task.epilogue.bias) args.push_back({DNNL_ARG_BIAS, p->bias, p->bias});
  args.push_back({DNNL_ARG_DST, p->dst, p->dst});
  return OnednnPlan{dnnl::matmul(pd), args, pd.scratchpad_desc(), pd.impl_info_str()};
}

std::optional<PackedMatmul> packed_matmul(const OnednnTask& task) {
  const Type& b = task.operands[1];
  const std::optional<MatmulProblem> p = matmul_problem(task);
  if (!p || b.shape.size() != 2 || b.layout) return std::nullopt;
  const bool transposed = task.op.attrs.get<bool>("transpose_b");
  const Type seen = transposed ? with_swapped_axes(b) : b;
  const dnnl::matmul::primitive_desc pd(p->desc(onednn_any_desc(seen)),
                                        onednn_attributes(task.epilogue), onednn_engine(), true);
  if (!pd || pd.weights_desc() == p->weights) return std::nullopt;
  const std::optional<Type> packed = with_onednn_layout(seen, pd.weights_desc());
  if (!packed || !packed->layout) return std::nullopt;
  return PackedMatmul{transposed ? with_swapped_axes(*packed) : *packed,
                      align_up(pd.scratchpad_desc().get_size())};
}

std::optional<OnednnPlan> plan_conv2d_int8(const OnednnTask& task) {
  const Shape& filter = task.operands[1].shape;
  if (!sums_fit(filter[1].size * filter[2].size * filter[3].size, task.operands[0].dtype))
    return std::nullopt;
  const ConvProblem p(task.op, task.operands[0], task.operands[1], task.result);
  VectorPostOps epilogue = vector_post_ops(task, 4, 3);
  const auto pd = p.forward(prop_kind::forward_inference, Desc(), epilogue.attributes);
  if (!pd) return std::nullopt;
  std::vector<OnednnPlan::Arg> args = {{DNNL_ARG_SRC, pd.src_desc(), p.x.actual},
                                       {DNNL_ARG_WEIGHTS, pd.weights_desc(), p.w.actual}};
  std::ranges::move(epilogue.args, std::back_inserter(args));
  args.push_back({DNNL_ARG_DST, pd.dst_desc(), p.y.actual});
  return checked_int8_plan(
      {dnnl::convolution_forward(pd), args, pd.scratchpad_desc(), pd.impl_info_str()});
}

std::optional<OnednnPlan> plan_matmul_int8(const OnednnTask& task) {
  const Type &a = task.operands[0], &b = task.operands[1], &y = task.result;
  if (a.layout || y.layout || !sums_fit(a.shape.back().size, a.dtype)) return std::nullopt;
  const bool transpose_b = task.op.attrs.get<bool>("transpose_b");
  const Desc src = matrix(folded(a), false), dst = matrix(folded(y), false);
  const Desc actual = b.layout ? onednn_desc(b) : matrix(b, transpose_b);
  VectorPostOps epilogue = vector_post_ops(task, 2, 1);
  const auto primitive_of = [&](const Desc& weights) {
    return dnnl::matmul::primitive_desc({src, weights, dst}, epilogue.attributes, onednn_engine(),
                                        true);
  };
  // oneDNN's own layout is up to 8 times as fast for few rows. A transposed matrix keeps its
  // layout, because its axes are not those of oneDNN's descriptor.
  auto pd = primitive_of(b.layout || transpose_b ? actual : onednn_any_desc(b));
  if (pd && pd.weights_desc().data.extra.flags != dnnl_memory_extra_flag_none)
    pd = primitive_of(actual);
  if (!pd) return std::nullopt;
  std::vector<OnednnPlan::Arg> args = {{DNNL_ARG_SRC, src, src},
                                       {DNNL_ARG_WEIGHTS, pd.weights_desc(), actual}};
  std::ranges::move(epilogue.args, std::back_inserter(args));
  args.push_back({DNNL_ARG_DST, dst, dst});
  return checked_int8_plan({dnnl::matmul(pd), args, pd.scratchpad_desc(), pd.impl_info_str()});
}

}  // namespace fluid
