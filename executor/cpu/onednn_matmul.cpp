#include "executor/cpu/onednn_memory.h"
#include "executor/cpu/onednn_plan.h"

namespace fluid {
namespace {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

/// Views a plain tensor of rank > 2 as a matrix: all dims but the last become rows.
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

bool same_batch(const Shape& a, const Shape& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end() - 2, b.begin());
}

}  // namespace

std::optional<OnednnPlan> plan_matmul(const OnednnTask& task) {
  const bool transpose_a = task.op.attrs.get<bool>("transpose_a");
  const bool transpose_b = task.op.attrs.get<bool>("transpose_b");
  Type a = task.operands[0], b = task.operands[1], y = task.result;
  if (a.layout || b.layout || y.layout || b.shape.size() < 2) return std::nullopt;
  if (b.shape.size() == 2 && a.shape.size() > 2 && !transpose_a) {
    a = folded(a);
    y = folded(y);
  }
  if (!same_batch(a.shape, b.shape)) return std::nullopt;
  const Desc src = matrix(a, transpose_a), weights = matrix(b, transpose_b), dst = matrix(y, false);
  Desc bias;
  if (task.epilogue.bias) {
    Type row = y;
    for (size_t d = 0; d + 1 < row.shape.size(); ++d) row.shape[d] = 1;
    bias = matrix(row, false);
  }
  const auto desc = task.epilogue.bias ? dnnl::matmul::desc(src, weights, bias, dst)
                                       : dnnl::matmul::desc(src, weights, dst);
  const dnnl::matmul::primitive_desc pd(desc, onednn_attributes(task.epilogue), onednn_engine(),
                                        true);
  if (!pd) return std::nullopt;
  std::vector<OnednnPlan::Arg> args = {{DNNL_ARG_SRC, src, src},
                                       {DNNL_ARG_WEIGHTS, weights, weights}};
  if (task.epilogue.bias) args.push_back({DNNL_ARG_BIAS, bias, bias});
  args.push_back({DNNL_ARG_DST, dst, dst});
  return OnednnPlan{dnnl::matmul(pd), args, pd.scratchpad_desc(), pd.impl_info_str()};
}

}  // namespace fluid
