#include <algorithm>

#include "ops/elementwise.h"
#include "ops/math/einsum.h"
#include "ops/operators.h"

namespace fluid {
namespace {

/// Returns the letters of `from` for which `condition` is true. The letter of the batch dimension
/// comes first.
std::string letters_where(const LabeledValue& from, const std::function<bool(char)>& condition) {
  std::string letters;
  for (size_t d = 0; d < from.labels.size(); ++d) {
    if (!condition(from.labels[d])) continue;
    const bool batch = from.value.shape()[d].batch;
    letters.insert(batch ? letters.begin() : letters.end(), from.labels[d]);
  }
  return letters;
}

Dim extent_of(const LabeledValue& x, char letter) { return x.value.shape()[x.labels.find(letter)]; }

Shape extents_of(const LabeledValue& x, const std::string& letters) {
  Shape shape;
  for (const char ch : letters) shape.push_back(extent_of(x, ch));
  return shape;
}

Shape joined_shape(Shape a, const Shape& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// An operand of a matrix product: [shared..., rows, columns], or [shared..., columns, rows] if
/// `transposed`.
struct EinsumMatrix {
  Value value;
  bool transposed = false;
};

/// Reshapes x to a matrix. If the letters of x are [shared, columns, rows], sets `transposed`
/// instead of permuting x.
EinsumMatrix as_matrix(const LabeledValue& x, const std::string& shared, const std::string& rows,
                       const std::string& columns) {
  const bool transposed = x.labels == shared + columns + rows;
  const std::string& first = transposed ? columns : rows;
  const std::string& last = transposed ? rows : columns;
  const LabeledValue ordered = permute_to(x, shared + first + last);
  const Shape shape = joined_shape(extents_of(x, shared),
                                   {extents_of(x, first).numel(), extents_of(x, last).numel()});
  return {reshape(ordered.value, shape), transposed};
}

/// Outer product: a [shared..., rows...] times b [shared..., columns...].
Value outer_product(const LabeledValue& a, const LabeledValue& b, const std::string& shared,
                    const std::string& rows, const std::string& columns) {
  const Shape ones(columns.size(), Dim(1)), spread(rows.size(), Dim(1));
  const Value left = permute_to(a, shared + rows).value;
  const Value right = permute_to(b, shared + columns).value;
  return reshape(left, joined_shape(left.shape(), ones)) *
         reshape(right,
                 joined_shape(joined_shape(extents_of(b, shared), spread), extents_of(b, columns)));
}

bool letters_have_batch(const LabeledValue& x, const std::string& letters) {
  return extents_of(x, letters).has_batch();
}

}  // namespace

Value masked_to_diagonal(Value v, size_t a, size_t b) {
  const auto indices_along = [&](size_t d) {
    const Dim extent = v.shape()[d];
    Shape shape(v.shape().size(), Dim(1));
    shape[d] = extent;
    return reshape(arange(*v.op()->graph(), {.type = Type{i64, {extent}, {}}}), shape);
  };
  return where(equal(indices_along(a), indices_along(b)), v, scalar_like(v, 0));
}

LabeledValue diagonal_of(LabeledValue x) {
  for (size_t d = x.labels.size(); d-- > 0;) {
    const size_t first = x.labels.find(x.labels[d]);
    if (first == d) continue;
    x.value = sum(masked_to_diagonal(x.value, first, d), {.axes = static_cast<int64_t>(d)});
    x.labels.erase(d, 1);
  }
  return x;
}

LabeledValue sum_except(LabeledValue x, const std::string& keep) {
  Ints axes;
  std::string kept;
  for (size_t d = 0; d < x.labels.size(); ++d) {
    if (has_letter(keep, x.labels[d])) {
      kept += x.labels[d];
    } else {
      axes.push_back(static_cast<int64_t>(d));
    }
  }
  return axes.empty() ? x : LabeledValue{sum(x.value, {.axes = axes}), kept};
}

LabeledValue permute_to(LabeledValue x, const std::string& order) {
  if (x.labels == order) return x;
  Ints perm;
  for (const char ch : order) perm.push_back(static_cast<int64_t>(x.labels.find(ch)));
  return {transpose(x.value, {.perm = perm}), order};
}

LabeledValue contract(LabeledValue a, LabeledValue b, const std::string& keep) {
  // If a letter has extent 1 in only one operand, say a, sum over it before the product:
  // sum(a * b) = a * sum(b).
  std::string alike = keep;
  for (const char ch : a.labels) {
    if (has_letter(b.labels, ch) && extent_of(a, ch) == extent_of(b, ch)) alike += ch;
  }
  a = sum_except(a, alike);
  b = sum_except(b, alike);
  const auto only_in = [](const LabeledValue& x, const LabeledValue& other) {
    return letters_where(x, [&](char ch) { return !has_letter(other.labels, ch); });
  };
  if (letters_have_batch(b, only_in(b, a))) std::swap(a, b);
  const std::string rows = only_in(a, b), columns = only_in(b, a);
  const auto both = [&](char ch) { return has_letter(b.labels, ch); };
  const std::string shared =
      letters_where(a, [&](char ch) { return both(ch) && has_letter(keep, ch); });
  const std::string summed =
      letters_where(a, [&](char ch) { return both(ch) && !has_letter(keep, ch); });
  const std::string labels = shared + rows + columns;
  if (summed.empty()) return {outer_product(a, b, shared, rows, columns), labels};
  const EinsumMatrix left = as_matrix(a, shared, rows, summed);
  const EinsumMatrix right = as_matrix(b, shared, summed, columns);
  const Value y = matmul(left.value, right.value,
                         {.transpose_a = left.transposed, .transpose_b = right.transposed});
  const Shape outer(y.shape().begin(), y.shape().end() - 2);
  return {
      reshape(y, joined_shape(outer, joined_shape(extents_of(a, rows), extents_of(b, columns)))),
      labels};
}

}  // namespace fluid
