#include "executor/fluidrun/learning_rate_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "executor/launcher/print_to.h"
#include "ir/atomic_file.h"
#include "ir/error.h"
#include "ir/text.h"

namespace fluid {
namespace {

constexpr double kWidth = 640, kHeight = 400;
constexpr double kLeft = 64, kRight = 16, kTop = 16, kBottom = 48;  // margins in pixels
constexpr int kLossTicks = 5;

/// Maps points of the curve to pixel coordinates.
class Axes {
 public:
  explicit Axes(const LearningRateCurve& curve)
      : first_(std::log10(curve.points.front().rate)), last_(std::log10(curve.points.back().rate)) {
    for (const LearningRatePoint& p : curve.points) {
      low_ = std::min({low_, p.loss, p.smoothed});
      high_ = std::max(high_, p.smoothed);  // y() clamps unsmoothed losses above it
    }
    if (high_ <= low_) high_ = low_ + 1;
    if (last_ <= first_) last_ = first_ + 1;
  }

  double x(double rate) const {
    return kLeft + (std::log10(rate) - first_) / (last_ - first_) * (kWidth - kLeft - kRight);
  }
  double y(double loss) const {
    const double fraction = std::clamp((loss - low_) / (high_ - low_), 0.0, 1.0);
    return kHeight - kBottom - fraction * (kHeight - kTop - kBottom);
  }
  double low() const { return low_; }
  double high() const { return high_; }
  double first() const { return first_; }
  double last() const { return last_; }

 private:
  double first_, last_, low_ = INFINITY, high_ = -INFINITY;
};

std::string line(double x1, double y1, double x2, double y2, const char* colour) {
  return fmt::format("<line x1='{:.1f}' y1='{:.1f}' x2='{:.1f}' y2='{:.1f}' stroke='{}'/>\n", x1,
                     y1, x2, y2, colour);
}

std::string label(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x='{:.1f}' y='{:.1f}' text-anchor='{}'>{}</text>\n", x, y, anchor,
                     text);
}

std::string curve_path(const LearningRateCurve& curve, const Axes& axes,
                       double LearningRatePoint::*value, const char* style) {
  std::string points;
  for (const LearningRatePoint& p : curve.points) {
    points += fmt::format("{:.1f},{:.1f} ", axes.x(p.rate), axes.y(p.*value));
  }
  return fmt::format("<polyline points='{}' fill='none' {}/>\n", points, style);
}

/// Labelled grid lines: one per power of ten on the x axis, and kLossTicks on the y axis.
std::string ticks(const Axes& axes) {
  std::string svg;
  for (double power = std::ceil(axes.first()); power <= axes.last(); ++power) {
    const double x = axes.x(std::pow(10, power));
    svg += line(x, kTop, x, kHeight - kBottom, "#ddd");
    svg += label(x, kHeight - kBottom + 16, "middle", fmt::format("1e{:.0f}", power));
  }
  for (int i = 0; i < kLossTicks; ++i) {
    const double loss = axes.low() + (axes.high() - axes.low()) * i / (kLossTicks - 1);
    svg += line(kLeft, axes.y(loss), kWidth - kRight, axes.y(loss), "#ddd");
    svg += label(kLeft - 6, axes.y(loss) + 4, "end", fmt::format("{:.3g}", loss));
  }
  return svg;
}

}  // namespace

std::string learning_rate_svg(const LearningRateCurve& curve) {
  std::string svg = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' viewBox='0 0 {0} {1}' "
      "font-family='sans-serif' font-size='12'>\n<rect width='100%' height='100%' fill='white'/>\n",
      kWidth, kHeight);
  if (!curve.points.empty()) {
    const Axes axes(curve);
    svg += ticks(axes);
    svg += curve_path(curve, axes, &LearningRatePoint::loss, "stroke='#bbb'");
    svg += curve_path(curve, axes, &LearningRatePoint::smoothed, "stroke='#06c' stroke-width='2'");
    if (curve.suggestion) {
      const double x = axes.x(*curve.suggestion);
      svg += line(x, kTop, x, kHeight - kBottom, "#c00");
      svg += label(x + 4, kTop + 12, "start", fmt::format("{:.2g}", *curve.suggestion));
    }
  }
  svg += label((kLeft + kWidth - kRight) / 2, kHeight - 12, "middle", "learning rate");
  svg += fmt::format(
      "<text transform='translate(14 {:.0f}) rotate(-90)' text-anchor='middle'>loss"
      "</text>\n</svg>\n",
      (kTop + kHeight - kBottom) / 2);
  return svg;
}

std::string learning_rate_csv(const LearningRateCurve& curve) {
  std::string csv = "learning_rate,loss,smoothed_loss\n";
  for (const LearningRatePoint& p : curve.points) {
    csv += fmt::format("{:.9g},{:.9g},{:.9g}\n", p.rate, p.loss, p.smoothed);
  }
  return csv;
}

void report_learning_rates(const LearningRateCurve& curve, const std::string& file) {
  if (curve.points.empty()) throw UserError("--find-lr: the loss of the first step is not finite");
  const LearningRatePoint& last = curve.points.back();
  print_to(stdout, "{} steps, learning rate {:.2g} to {:.2g}\n", curve.points.size(),
           curve.points.front().rate, last.rate);
  if (curve.suggestion) {
    print_to(stdout, "suggested learning rate: {:.2g}, where the loss falls most steeply\n",
             *curve.suggestion);
  } else {
    print_to(stdout, "no suggestion: the loss does not fall\n");
  }
  if (file.empty()) return;
  write_file_atomically(file, ir::lowercase(file).ends_with(".csv") ? learning_rate_csv(curve)
                                                                    : learning_rate_svg(curve));
}

}  // namespace fluid
