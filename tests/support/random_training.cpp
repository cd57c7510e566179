#include "tests/support/random_training.h"

#include <algorithm>

#include "frontend/optimizers.h"
#include "ops/functions.h"
#include "ops/operators.h"
#include "tests/support/random_vocabulary.h"
#include "tests/support/random_windows.h"

namespace fluid::testing {
namespace {

constexpr int64_t kMaxElements = 20000;  // maximum elements of a value, per sample

class RandomRecorder {
 public:
  RandomRecorder(uint64_t seed, size_t most_ops) : random_(seed), most_ops_(most_ops) {}

  RandomTraining run() {
    random_.batch().size = one_of<int64_t>({1, 3, 8, 19, 33});
    const int64_t a = extent(), b = extent();
    if (below(4) == 0) {
      pool_.push_back(random_.feed(
          {kBatch, one_of<int64_t>({1, 2, 3, 16}), one_of<int64_t>({1, 4, 7}), extent()}));
    } else {
      pool_.push_back(random_.feed(below(6) == 0 ? Shape{a, kBatch, b} : Shape{kBatch, a, b}));
    }
    pool_.push_back(parameter({b}));
    pool_.push_back(parameter({a, b}));
    for (size_t ops = 2 + below(most_ops_ - 1); ops > 0; --ops) grow();
    Value loss = mean(tanh(pool_[1]));  // depends on a parameter
    for (size_t i = std::max<size_t>(pool_.size(), 5) - 5; i < pool_.size(); ++i) {
      loss = loss + mean(tanh(pool_[i]));
      if (below(3) == 0) random_.net().output("value" + std::to_string(i), pool_[i]);
    }
    random_.net().output("loss", loss);
    if (below(4) == 0) random_.net().output("metric", metric());
    minimize_by_any(loss);
    return {std::move(random_.net()), std::move(random_.batch())};
  }

 private:
  size_t below(size_t n) { return random_.below(n); }
  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return random_.one_of(choices);
  }
  int64_t extent() { return random_.extent(); }
  Value parameter(const Shape& shape) { return random_.parameter(shape); }
  Value labels(const Shape& rows, int64_t classes) { return random_.labels(rows, classes); }

  Value any() { return pool_[below(pool_.size())]; }

  /// Optimizers that do not amplify small gradients, in which rounding errors are large.
  void minimize_by_any(Value loss) {
    switch (below(8)) {
      case 0:
        return minimize(loss, Momentum{.lr = 0.5, .nesterov = true});
      case 1:
        return minimize(loss, Adam{.lr = 0.1, .eps = 0.1});
      case 2:
        return minimize(loss, RMSprop{.lr = 0.1, .eps = 0.1}, {.clip = {.global_norm = 0.5}});
      default:
        return minimize(loss, SGD{.lr = 1});
    }
  }

  /// A metric of scores that the precision does not change.
  Value metric() {
    const Value scores = random_.feed({kBatch, 3}), label = labels({kBatch}, 3);
    const Value x = any();
    switch (below(11)) {
      case 0:
        return accuracy(scores, label);
      case 1:
        return top_k_accuracy(scores, label, {.k = 2});
      case 2:
        return f1_score(scores, label);
      case 3:
        return precision(scores, label, {.average = "micro"});
      case 4:
        return recall(random_.feed({kBatch}), labels({kBatch}, 2), {.average = "binary"});
      case 5:
        return perplexity(scores * 2.0, label, {.ignore_index = {1}});
      case 6:
        return r2_score(scores, random_.feed({kBatch, 3}));
      case 7:
        return roc_auc(random_.feed({kBatch}), labels({kBatch}, 2));
      case 8:
        return mean_squared_error(x, tanh(x));
      case 9:
        return below(2) == 0 ? mean_absolute_error(x, tanh(x))
                             : root_mean_squared_error(x, tanh(x));
      default:
        return fluid::metric(mean(tanh(x)), mean(sigmoid(x)));
    }
  }

  /// A value that broadcasts with `x`: one of the pool, else a parameter of its last extents.
  Value partner(Value x) {
    const Value other = any();
    if (other.shape() == x.shape() || other.shape().rank() == 0) return other;
    return x.shape().rank() > 0 && !x.shape().back().batch ? parameter({x.shape().back()}) : x;
  }

  void grow() {
    const Value x = any();
    const bool is_tensor = x.shape().rank() > 0;
    try {
      if (is_tensor && below(2) == 0) {
        const Value y = random_op(random_, x, partner_);
        const int64_t elements = y.shape().numel().size;
        if (elements > 0 && elements <= kMaxElements) pool_.push_back(y);
        return;
      }
      pool_.push_back(is_tensor ? of_tensor(x) : of_element(x));
    } catch (const UserError&) {  // skips ops that do not fit
    }
  }

  Value of_element(Value x) {
    switch (below(10)) {
      case 0:
        return tanh(x);
      case 1:
        return relu(x);
      case 2:
        return abs(x);
      case 3:
        return x + partner(x);
      case 4:
        return maximum(x, partner(x));
      case 5:
        return minimum(x, partner(x));
      default:
        return x * partner(x);
    }
  }

  Value of_tensor(Value x) {
    const Shape& shape = x.shape();
    const auto rank = static_cast<size_t>(shape.rank());
    const auto axis = static_cast<int64_t>(below(rank));
    if (rank == 4 && below(3) == 0) {
      return random_window_op({random_, x, partner_});
    }
    switch (below(16)) {
      case 0:  // multiply-adds that a reduction and a comparison share
        return chosen(x * partner(x) + partner(x), axis);
      case 1:
        return chosen(x, axis);
      case 2:
        return max(x, {.axes = axis, .keep_dims = below(2) == 0});
      case 3:
        return min(x * partner(x) + partner(x), {.axes = axis, .keep_dims = true});
      case 4:
        return sum(x * partner(x), {.axes = axis, .keep_dims = below(2) == 0});
      case 5:
        return mean(x, {.axes = axis, .keep_dims = below(2) == 0});
      case 6:
        return softmax(x, {.axis = axis});
      case 7:
        return x * partner(x) + partner(x);
      case 8: {
        const Shape rows(shape.begin(), shape.end() - 1);
        return softmax_cross_entropy(x, labels(rows, shape.back().size));
      }
      case 9: {
        Shape column(shape.begin(), shape.end() - 1);
        column.emplace_back(1);
        return take_along_axis(x, labels(column, shape.back().size));
      }
      case 10:
        return reshape(x, with_ones(shape));
      case 11:
        return matmul(x, parameter({shape.back(), Dim(extent())}));
      case 12:
        return matmul(x, parameter({1, shape[rank - 2], Dim(extent())}), {.transpose_a = true});
      default:
        return of_element(x);
    }
  }

  /// Elements of x where a feed is largest along an axis, by comparison with the maximum: among
  /// computed elements, rounding would decide which are equal.
  Value chosen(Value x, int64_t axis) {
    const Value feed = random_.feed(x.shape());
    const Value largest = max(feed, {.axes = axis, .keep_dims = true});
    return where(equal(feed, largest), x, scalar_like(x, 0));
  }

  Shape with_ones(const Shape& shape) {
    Shape wider;
    for (const Dim& d : shape) {
      wider.push_back(d);
      if (below(2) == 0) wider.push_back(1);
    }
    return wider;
  }

  RandomSources random_;
  size_t most_ops_;
  const std::function<Value(Value)> partner_ = [this](Value x) { return partner(x); };
  Values pool_;
};

}  // namespace

RandomTraining random_training(uint64_t seed, size_t most_ops) {
  return RandomRecorder(seed, most_ops).run();
}

}  // namespace fluid::testing
