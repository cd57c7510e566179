#pragma once

#include <functional>
#include <string>

#include "ops/functions.h"
#include "ops/operators.h"
#include "tests/support/random_sources.h"

namespace fluid::testing {

/// The operand of a random op, and the source of its attributes and of its other operands.
struct Choice {
  RandomSources& random;
  Value x;
  /// Returns a value that broadcasts with its argument.
  const std::function<Value(Value)>& partner;

  size_t below(size_t n) const { return random.below(n); }
  bool coin() const { return random.coin(); }
  template <class T>
  T one_of(std::initializer_list<T> choices) const {
    return random.one_of(choices);
  }
  int64_t axis() const { return random.axis_of(x); }
  const Shape& shape() const { return x.shape(); }
  int64_t rank() const { return x.shape().rank(); }
  /// A value of x's shape.
  Value twin() const { return partner(x) + x * 0.5; }
  /// The extent of dimension `axis`. Throws UserError if it depends on the batch.
  int64_t extent(int64_t axis) const {
    const Dim d = x.shape()[static_cast<size_t>(axis)];
    if (d.batch) throw UserError("batch");
    return d.size;
  }
  Dim last() const { return extent(rank() - 1); }
  /// x's shape with extent `extent` along `axis`.
  Shape with_extent(int64_t axis, Dim extent) const {
    Shape shape = x.shape();
    shape[static_cast<size_t>(axis)] = extent;
    return shape;
  }
  /// x's shape without dimension `axis`.
  Shape without(int64_t axis) const {
    Shape shape = x.shape();
    shape.erase(shape.begin() + axis);
    return shape;
  }
  /// Usually "none": reduced losses leave programs of scalars.
  std::string reduction() const {
    return one_of<std::string>({"none", "none", "none", "mean", "sum"});
  }
  void require_rank(int64_t least) const {
    if (rank() < least) throw UserError("rank");
  }
};

/// Records an op, or a few, on Choice::x. Throws UserError if the op does not take this operand.
using Make = Value (*)(const Choice&);

template <size_t N>
Value pick(const Choice& c, const Make (&makes)[N]) {
  return makes[c.below(N)](c);
}

}  // namespace fluid::testing
