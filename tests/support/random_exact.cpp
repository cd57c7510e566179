#include "tests/support/random_exact.h"

namespace fluid::testing {
namespace {

constexpr int64_t kLargest = 4;  // of the absolute values before an op

/// The best elements along `axis`, from one to all.
Values random_topk(const Choice& c, Value v, int64_t axis) {
  const int64_t k = 1 + static_cast<int64_t>(c.below(static_cast<size_t>(c.extent(axis))));
  return topk(v, {.k = k, .axis = axis, .largest = c.coin(), .sorted = c.coin()});
}

/// Whole numbers of a random dtype, between -kLargest and kLargest, or 0 and kLargest for u8. The
/// results of the ops below are at most 256, which bf16 holds exactly, for at most 40 elements
/// along an axis.
class WholeNumbers {
 public:
  explicit WholeNumbers(const Choice& c)
      : c_(c), dtype_(c.one_of<DType>({i64, i32, u8, bf16, f16, f32, f64})) {}

  /// A value that broadcasts with x, of a float or integer dtype or bool.
  Value run() {
    Value v = draw();
    for (size_t ops = 1 + c_.below(4); ops > 0; --ops) v = limited(next(v));
    if (c_.coin()) return v;
    return flags(v, c_.coin() ? draw() : v);
  }

 private:
  Value draw(const Shape& shape) {
    const Value all = c_.random.labels(shape, is_signed() ? 2 * kLargest + 1 : kLargest + 1);
    return cast(is_signed() ? all - static_cast<double>(kLargest) : all, dtype_);
  }
  Value draw() { return draw(c_.shape()); }

  bool is_signed() const { return dtype_ != u8; }
  Value limited(Value v) const {
    const auto largest = static_cast<double>(kLargest);
    return clip(cast(v, dtype_), {.min = is_signed() ? -largest : 0, .max = largest});
  }

  Value comparison(Value a, Value b) const {
    switch (c_.below(6)) {
      case 0:
        return equal(a, b);
      case 1:
        return not_equal(a, b);
      case 2:
        return less(a, b);
      case 3:
        return less_equal(a, b);
      case 4:
        return greater(a, b);
      default:
        return greater_equal(a, b);
    }
  }

  Value flags(Value a, Value b) {
    Value p = comparison(a, b);
    const Value q = comparison(b, draw());
    switch (c_.below(6)) {
      case 0:
        p = logical_and(p, q);
        break;
      case 1:
        p = logical_or(p, q);
        break;
      case 2:
        p = logical_xor(p, q);
        break;
      case 3:
        p = logical_not(p);
        break;
      default:
        break;
    }
    const int64_t axis = c_.axis();
    switch (c_.below(8)) {
      case 0:
        return all(p, {.axes = axis, .keep_dims = true});
      case 1:
        return any(p, {.axes = axis, .keep_dims = true});
      case 2:
        return sum(p, {.axes = axis, .keep_dims = true});
      case 3:
        return prod(p, {.axes = axis, .keep_dims = true});
      case 4:
        return is_float(dtype_) ? logical_and(p, is_finite(a)) : p;
      case 5:
        return is_float(dtype_) ? logical_or(is_nan(a), is_inf(b)) : p;
      default:
        return p;
    }
  }

  Value next(Value v) {
    switch (c_.below(4)) {
      case 0:
        return elementwise(v);
      case 1:
        return reduced(v);
      case 2:
        return ordered(v);
      default:
        return moved(v);
    }
  }

  Value elementwise(Value v) {
    const Value other = draw();
    switch (c_.below(13)) {
      case 0:
        return v + other;
      case 1:
        return is_signed() ? v - other : maximum(v, other);
      case 2:
        return v * other;
      case 3:
        return maximum(v, other);
      case 4:
        return minimum(v, other);
      case 5:
        return abs(v);
      case 6:
        return is_signed() ? neg(v) : square(v);
      case 7:
        return sign(v);
      case 8:
        return mod(v, maximum(other, scalar_like(other, 1)));
      case 9:
        return is_float(dtype_) ? trunc(v * 0.5) : mod(v, other);  // integers modulo 0 are 0
      case 10:
        return is_float(dtype_) ? round(v * 0.5) + floor(other * 0.5) : square(v);
      case 11:
        return masked_fill(v, comparison(v, other), {.value = 3});
      default:
        return where(comparison(v, other), other, v);
    }
  }

  Value reduced(Value v) {
    const int64_t axis = c_.axis();
    switch (c_.below(8)) {
      case 0:
        return sum(v, {.axes = axis, .keep_dims = true});
      case 1:
        return max(v, {.axes = axis, .keep_dims = true});
      case 2:
        return min(v, {.axes = axis, .keep_dims = true});
      case 3:
        return prod(sign(v), {.axes = axis, .keep_dims = true});
      case 4:
        return argmax(v, {.axis = axis, .keep_dims = true});
      case 5:
        return argmin(v, {.axis = axis, .keep_dims = true});
      case 6:
        return max_index(v, {.axes = axis, .keep_dims = true})[c_.below(2)];
      default:
        return topk(v, {.k = 1, .axis = axis, .largest = c_.coin()})[c_.below(2)];
    }
  }

  Value ordered(Value v) {
    const Choice c = {c_.random, v, c_.partner};  // v may have extent 1 where x has more
    const int64_t axis = c.axis();
    switch (c.below(6)) {
      case 0:
        return sort(v, {.axis = axis, .descending = c.coin()})[c.below(2)];
      case 1:
        return argsort(v, {.axis = axis, .descending = c.coin()});
      case 2:
        return cumsum(v, {.axis = axis, .exclusive = c.coin(), .reverse = c.coin()});
      case 3:
        return cumprod(sign(v), {.axis = axis, .exclusive = c.coin(), .reverse = c.coin()});
      case 4:
        return sum(random_topk(c, v, axis)[c.below(2)], {.axes = axis, .keep_dims = true});
      default: {
        Shape classes = c.without(axis);
        classes.emplace_back(3);
        const Value rows =
            one_hot(c.random.labels(c.without(axis), 4), {.to = Type{dtype_, classes, {}}});
        return v + unsqueeze(max(rows, {.axes = -1}), {.axes = axis});
      }
    }
  }

  Value moved(Value v) {
    const Choice c = {c_.random, v, c_.partner};
    const int64_t axis = c.axis();
    const int64_t n = c.extent(axis);
    switch (c.below(9)) {
      case 0:
        return take_along_axis(v, c.random.labels(c.shape(), n), {.axis = axis});
      case 1:
        return gather(v, c.random.labels({Dim(n)}, n), {.axis = axis});
      case 2: {
        const auto reduce = c.one_of<std::string>({"none", "add", "mul", "max", "min"});
        const Shape places = c.with_extent(axis, 2);
        return scatter(v, c.random.labels(places, n), draw(places),
                       {.axis = axis, .reduce = reduce});
      }
      case 3:
        return index_add(v, c.random.labels({5}, n), draw(c.with_extent(axis, 5)),
                         {.axis = axis, .alpha = c.one_of<double>({1, 2})});
      case 4:
        return flip(v, {.axes = {axis}});
      case 5:
        return roll(v, {.shifts = {-2}, .axes = {axis}});
      case 6: {
        Ints width(c.shape().size(), 0);
        width[static_cast<size_t>(axis)] = 2;
        const auto mode = c.one_of<std::string>({"constant", "edge"});
        return slice(pad(v, {.low = width, .value = 3, .mode = mode}),
                     {.starts = {1}, .stops = {n + 1}, .axes = {axis}});
      }
      case 7:
        return tril(v, {.diagonal = c.one_of<int64_t>({-1, 0, 2})});
      default:
        return scatter_nd(v, c.random.labels({3, 1}, c.extent(0)), draw(c.with_extent(0, 3)),
                          {.reduce = c.one_of<std::string>({"none", "add", "max", "min"})});
    }
  }

  const Choice& c_;
  DType dtype_;
};

/// Small whole numbers of x's shape. A parameter, whose value they do not depend on, gets their
/// gradient.
Value tied(const Choice& c) {
  Shape shape = c.shape();
  for (Dim& d : shape) {
    if (d.batch) d = 1;
  }
  const Value p = c.random.parameter(shape);
  return cast(c.random.labels(c.shape(), 5), c.x.dtype()) - 2.0 + (p - stop_gradient(p));
}

constexpr Make kTied[] = {
    [](const Choice& c) { return relu(tied(c)); },
    [](const Choice& c) { return abs(tied(c)); },
    [](const Choice& c) { return clip(tied(c), {.min = -1, .max = 1}); },
    [](const Choice& c) { return relu6(tied(c) * 3.0); },
    [](const Choice& c) { return leaky_relu(tied(c)); },
    [](const Choice& c) { return hard_sigmoid(tied(c), {.alpha = 0.25}); },
    [](const Choice& c) { return sign(tied(c)) * c.x; },
    [](const Choice& c) { return mod(tied(c), scalar_like(c.x, 2)) * c.x; },
    [](const Choice& c) { return maximum(tied(c), tied(c)); },
    [](const Choice& c) { return minimum(tied(c), scalar_like(c.x, 1)); },
    [](const Choice& c) { return max(tied(c), {.axes = c.axis(), .keep_dims = c.coin()}); },
    [](const Choice& c) { return min(tied(c), {.axes = c.axis(), .keep_dims = c.coin()}); },
    [](const Choice& c) { return max(tied(c), {.axes = Ints{}}); },
    [](const Choice& c) { return prod(tied(c), {.axes = c.axis()}) * 1e-9; },
    [](const Choice& c) { return norm_l1(tied(c), {.axes = c.axis()}); },
    [](const Choice& c) { return norm_l2(tied(c), {.axes = c.axis()}); },
    [](const Choice& c) { return cumprod(tied(c) * 0.5, {.axis = c.axis()}); },
    [](const Choice& c) { return sort(tied(c), {.axis = c.axis(), .descending = c.coin()})[0]; },
    [](const Choice& c) { return random_topk(c, tied(c), c.axis())[0]; },
    [](const Choice& c) {
      const int64_t axis = c.axis();
      const auto reduce = c.one_of<std::string>({"add", "mul", "max", "min"});
      return scatter(tied(c), c.random.labels(c.shape(), c.extent(axis)), tied(c),
                     {.axis = axis, .reduce = reduce});
    },
    [](const Choice& c) {
      c.require_rank(3);
      return max_pool1d(flatten(tied(c), {.axis = 2}), {.kernel = 3, .stride = 1, .padding = 1});
    },
    [](const Choice& c) {
      c.require_rank(4);
      return max_pool2d(tied(c), {.kernel = {2}, .stride = {1}, .ceil_mode = c.coin()});
    },
    [](const Choice& c) {
      c.require_rank(4);
      return adaptive_max_pool2d(tied(c), {.output = {3, 2}});
    },
    [](const Choice& c) { return l1_loss(tied(c), tied(c)); },
    [](const Choice& c) { return smooth_l1_loss(tied(c), tied(c)); },
    [](const Choice& c) { return huber_loss(tied(c), tied(c), {.delta = 2}); },
    [](const Choice& c) { return hinge_loss(tied(c), stop_gradient(sign(tied(c)))); },
};

}  // namespace

Value random_exact_op(const Choice& c) {
  const Value v = WholeNumbers(c).run();
  if (v.dtype() == boolean) {
    return c.coin() ? where(v, c.x, c.twin()) : masked_fill(c.x, v, {.value = 0.5});
  }
  const Value number = cast(v, c.x.dtype()) * 0.125;
  return c.coin() ? c.x + number : c.x * number;
}

Value random_tied_op(const Choice& c) { return pick(c, kTied); }

}  // namespace fluid::testing
