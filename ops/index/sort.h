#pragma once

#include "ops/kernel_writer.h"

namespace fluid {

/// Returns attribute "axis" as a non-negative index. Throws UserError (by c.fail()) unless operand
/// 0 is a numeric tensor with fewer than 2^31 elements along "axis".
int64_t require_sortable(const InferCtx& c);

/// Type inference of an op that returns the first elements in sorted order along "axis", and their
/// indices. Attribute "k" is the number of elements.
std::vector<Type> infer_partial_sort(const InferCtx& c);

/// Settings of a stable merge sort along `axis` that returns only the first `keep` elements.
struct LineSort {
  int64_t axis = 0, keep = 0;
  bool descending = false;
};
/// Writes the kernel of an op whose results are the sorted elements of operand 0 and their indices
/// (i64), both of extent `keep` along the axis.
kir::Kernel sort_kernel(const LoopsCtx& c, const LineSort& sort);

/// Gradient of an op whose results are sorted elements of operand 0 and their indices along
/// attribute "axis". Scatters the gradient of each sorted element to its original index.
Values sort_grad(const GradCtx& c);

/// FLOPs of a sort of operand 0 along attribute "axis" that returns `keep` elements.
double sort_flops(const CostCtx& c, int64_t keep);

/// Extent of operand 0 along attribute "axis".
int64_t sorted_extent(const Attrs& attrs, const Shape& shape);

}  // namespace fluid
