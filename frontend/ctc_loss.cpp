#include "frontend/ctc_loss.h"

#include <limits>

#include "frontend/checked_index.h"
#include "frontend/layer_parameters.h"
#include "frontend/scan.h"
#include "ops/functions.h"
#include "ops/operators.h"

namespace fluid {
namespace {

/// Stands for log(0). It is finite because the gradient of logsumexp is NaN where all inputs
/// are -inf.
constexpr double kLogZero = -1e30;

/// Records the loss of one batch. The extended target has a blank before, between and after the
/// labels of the target. Its length is L = 2 S + 1.
class Ctc {
 public:
  Ctc(Value log_probs, Value targets, Value input_lengths, Value target_lengths,
      const CtcLoss& options, const Loc& loc)
      : log_probs_(log_probs),
        targets_(targets),
        input_lengths_(input_lengths),
        target_lengths_(target_lengths),
        options_(options),
        loc_(loc),
        graph_(input_graph(log_probs, "ctc_loss", loc)) {
    check();
    samples_ = log_probs.shape()[0];
    extended_length_ = 2 * targets.shape()[1].size + 1;
  }

  Value record() {
    const ir::ScopedRecording as(graph_, layer_recording(graph_, "ctc_loss", ""));
    log_probs_ = cast(log_probs_, compute_dtype(log_probs_.dtype()), loc_);
    input_lengths_ = checked_lengths(input_lengths_, log_probs_.shape()[1], loc_);
    target_lengths_ = checked_index(target_lengths_, targets_.shape()[1].size + 1, loc_);
    const Value labels = labels_with_blanks();
    const Value log_alpha = scan_inputs(labels);
    const Value loss = neg(log_probability(log_alpha), loc_);
    const Value infinite = greater(loss, constant(-0.5 * kLogZero), loc_);
    const double infinity = std::numeric_limits<double>::infinity();
    return reduced(where(infinite, constant(options_.zero_infinity ? 0 : infinity), loss, loc_));
  }

 private:
  void check() const {
    const auto text = [](Value v) { return v ? v.type().str() : std::string("an empty value"); };
    const Shape& shape = log_probs_.shape();
    require_float_type(log_probs_.type(),
                       shape.rank() == 3 && !shape[1].batch && shape[2].is_constant(),
                       "ctc_loss: log_probs", "[N, T, C]", loc_);
    require(
        targets_ && is_integer(targets_.dtype()) && targets_.shape().rank() == 2 &&
            targets_.shape()[0] == shape[0] && targets_.shape()[1].is_constant() &&
            targets_.shape()[1].size > 0,
        loc_,
        "ctc_loss: targets is " + text(targets_) + ", not integers [" + shape[0].str() + ", S]");
    for (const Value& lengths : {input_lengths_, target_lengths_}) {
      require(lengths && is_integer(lengths.dtype()) && lengths.shape() == Shape{shape[0]}, loc_,
              "ctc_loss: lengths are " + text(lengths) + ", not integers [" + shape[0].str() + "]");
    }
    require(options_.blank >= 0 && options_.blank < shape[2].size, loc_,
            "ctc_loss: blank " + std::to_string(options_.blank) + " is not in [0, " +
                std::to_string(shape[2].size) + ")");
    const std::string& reduction = options_.reduction;
    require(reduction == "none" || reduction == "mean" || reduction == "sum", loc_,
            "ctc_loss: reduction is '" + reduction + "', not none, mean or sum");
  }

  Value filled(DType dtype, const Shape& shape, double value) const {
    return fill(graph_, {.type = Type{dtype, shape, {}}, .value = value}, loc_);
  }
  Value constant(double value) const { return filled(log_probs_.dtype(), {}, value); }

  /// Returns the extended targets [N, L]: a blank, then each label followed by a blank. Elements
  /// past the length of a target may be any integers and are replaced by blanks.
  Value labels_with_blanks() const {
    const Shape& shape = targets_.shape();
    const auto blank = static_cast<double>(options_.blank);
    const Value blanks = filled(targets_.dtype(), shape, blank);
    const Value position = arange(graph_, {.type = Type{i64, {shape[1]}, {}}}, loc_);
    const Value within = less(position, unsqueeze(target_lengths_, {.axes = {1}}, loc_), loc_);
    const Value labels = where(within, targets_, blanks, loc_);
    const Value pairs = stack({labels, blanks}, {.axis = 2}, loc_);
    return concat({filled(targets_.dtype(), {samples_, 1}, blank),
                   reshape(pairs, {samples_, extended_length_ - 1}, loc_)},
                  {.axis = 1}, loc_);
  }

  /// Shifts x [N, L] by `offset` positions along L. Sets the first `offset` elements to
  /// `fill_value`.
  Value shifted(Value x, int64_t offset, double fill_value) const {
    const Value rest =
        slice(x, {.starts = {0}, .stops = {extended_length_ - offset}, .axes = {1}}, loc_);
    return concat({filled(x.dtype(), {samples_, offset}, fill_value), rest}, {.axis = 1}, loc_);
  }

  /// Returns log(exp(a) + exp(b) + exp(c)), computed stably.
  Value log_sum(Value a, Value b, Value c) const {
    const Value max = stop_gradient(maximum(maximum(a, b, loc_), c, loc_), loc_);
    return max + log(exp(a - max, loc_) + exp(b - max, loc_) + exp(c - max, loc_), loc_);
  }

  /// Returns the forward variables log alpha [N, L] after the last step of each input: the total
  /// log-probability of all alignments that end at each position of the extended target.
  Value scan_inputs(Value labels) const {
    const Shape& shape = log_probs_.shape();
    const DType dtype = log_probs_.dtype();
    // An alignment may skip the blank between two different labels.
    const Value skips = logical_and(
        not_equal(labels, filled(labels.dtype(), {}, static_cast<double>(options_.blank)), loc_),
        not_equal(labels, shifted(labels, 2, static_cast<double>(options_.blank)), loc_), loc_);
    const Value start = concat({filled(dtype, {samples_, 1}, 0),
                                filled(dtype, {samples_, extended_length_ - 1}, kLogZero)},
                               {.axis = 1}, loc_);
    const Value times =
        arange(graph_, {.type = Type{input_lengths_.dtype(), {shape[1]}, {}}}, loc_);
    const auto step = [&](const Values& carries, const Values& elements) {
      const Value alpha = carries[0];
      const Value skipping =
          where(skips, shifted(alpha, 2, kLogZero), filled(dtype, {}, kLogZero), loc_);
      const Value emitted = maximum(take_along_axis(elements[0], labels, {.axis = 1}, loc_),
                                    filled(dtype, {}, kLogZero), loc_);
      const Value next = log_sum(alpha, shifted(alpha, 1, kLogZero), skipping) + emitted;
      const Value within = unsqueeze(less(elements[1], input_lengths_, loc_), {.axes = {1}}, loc_);
      return ScanStep{.carries = {where(within, next, alpha, loc_)}};
    };
    const Value inputs = transpose(log_probs_, {.perm = {1, 0, 2}}, loc_);
    return scan({start}, {inputs, times}, step, {}, loc_).carries[0];
  }

  /// Log-probability of each target, [N]. Alignments end at the last label or at the last blank of
  /// the extended target.
  Value log_probability(Value log_alpha) const {
    const Value last =
        unsqueeze(target_lengths_ * filled(target_lengths_.dtype(), {}, 2), {.axes = {1}}, loc_);
    const Value zero = filled(last.dtype(), {}, 0);
    const Value label = maximum(last - filled(last.dtype(), {}, 1), zero, loc_);
    const Value at_blank = take_along_axis(log_alpha, last, {.axis = 1}, loc_);
    const Value at_label =
        where(greater(last, zero, loc_), take_along_axis(log_alpha, label, {.axis = 1}, loc_),
              filled(log_alpha.dtype(), {}, kLogZero), loc_);
    const Value max = stop_gradient(maximum(at_blank, at_label, loc_), loc_);
    const Value sum = exp(at_blank - max, loc_) + exp(at_label - max, loc_);
    return squeeze(max + log(sum, loc_), {.axes = {1}}, loc_);
  }

  Value reduced(Value loss) const {
    if (options_.reduction == "none") return loss;
    if (options_.reduction == "sum") return sum(loss, {}, loc_);
    const Value lengths = maximum(target_lengths_, filled(target_lengths_.dtype(), {}, 1), loc_);
    return mean(loss / cast(lengths, loss.dtype(), loc_), {}, loc_);
  }

  Value log_probs_, targets_, input_lengths_, target_lengths_;
  const CtcLoss& options_;
  const Loc& loc_;
  ir::Graph& graph_;
  Dim samples_;
  int64_t extended_length_ = 0;  ///< L = 2 S + 1
};

}  // namespace

Value ctc_loss(Value log_probs, Value targets, Value input_lengths, Value target_lengths,
               const CtcLoss& options, const Loc& loc) {
  return Ctc(log_probs, targets, input_lengths, target_lengths, options, loc).record();
}

}  // namespace fluid
