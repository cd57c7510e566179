// mixup() and cutmix().

#include <algorithm>
#include <cmath>
#include <cstring>

#include "frontend/readers/batch_transform.h"
#include "frontend/readers/forwarded_data.h"
#include "frontend/readers/image_stages.h"
#include "frontend/readers/one_hot.h"
#include "frontend/readers/split_mix64.h"
#include "ir/error.h"

namespace fluid {
namespace {

/// Draws from the gamma distribution with `shape` and scale 1 (Marsaglia and Tsang, "A simple
/// method for generating gamma variables", 2000).
double draw_gamma(SplitMix64& random, double shape) {
  if (shape < 1) {
    const double power = std::pow(1 - random.uniform(), 1 / shape);
    return draw_gamma(random, shape + 1) * power;
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = random.normal(), v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(1 - random.uniform()) < 0.5 * x * x + d * (1 - v + std::log(v))) {
      return d * v;
    }
  }
}

double draw_beta(SplitMix64& random, double alpha) {
  const double a = draw_gamma(random, alpha), b = draw_gamma(random, alpha);
  return a + b > 0 ? a / (a + b) : 1;
}

size_t mixed_image_column(const SampleSource& source) {
  for (size_t c = 0; c < source.columns().size(); ++c) {
    const Column& column = source.columns()[c];
    const bool mixes = column.dtype == DType::u8 || column.dtype == DType::f32;
    if (mixes && column.shape.size() == 3) return c;
  }
  throw UserError("mixup and cutmix need a column of images");
}

/// Checks the source and the options of mixup() and cutmix(), and encodes the labels.
SampleSourcePtr with_vectors_of_labels(const SampleSourcePtr& source, const MixOptions& options) {
  mixed_image_column(*source);
  if (!(options.alpha > 0)) throw UserError("mixup and cutmix need an alpha above 0");
  return one_hot(source, options.classes);
}

/// Draws the rectangle that cutmix() pastes.
ImageBox draw_box(SplitMix64& random, double weight, int64_t height, int64_t width) {
  const auto center_x = static_cast<int64_t>(random.below(static_cast<uint64_t>(width)));
  const auto center_y = static_cast<int64_t>(random.below(static_cast<uint64_t>(height)));
  const double half = 0.5 * std::sqrt(1 - weight);
  const auto half_width = static_cast<int64_t>(half * static_cast<double>(width));
  const auto half_height = static_cast<int64_t>(half * static_cast<double>(height));
  const int64_t left = std::max<int64_t>(0, center_x - half_width);
  const int64_t top = std::max<int64_t>(0, center_y - half_height);
  return {top, left, std::min(height, center_y + half_height) - top,
          std::min(width, center_x + half_width) - left};
}

class MixedSource : public ForwardedSource, public BatchTransform {
 public:
  MixedSource(SampleSourcePtr inner, MixOptions options, bool pastes)
      : ForwardedSource(with_vectors_of_labels(inner, options)),
        alpha_(options.alpha),
        pastes_(pastes),
        image_(mixed_image_column(*inner)),
        label_(label_column(*inner, options.classes)),
        columns_(inner_->columns()),
        classes_(columns_[label_].numel()) {
    if (!pastes_) columns_[image_].dtype = DType::f32;
  }

  const std::vector<Column>& columns() const override { return columns_; }
  const BatchTransform* batch_transform() const override { return this; }

  void read(int64_t sample, const AugmentationSeed& seed,
            std::span<std::byte* const> to) const override {
    const bool widens = inner_->columns()[image_].dtype != columns_[image_].dtype;
    if (!widens || to[image_] == nullptr) return inner_->read(sample, seed, to);
    std::vector<uint8_t> bytes(static_cast<size_t>(columns_[image_].numel()));
    std::vector<std::byte*> inner_to(to.begin(), to.end());
    inner_to[image_] = reinterpret_cast<std::byte*>(bytes.data());
    inner_->read(sample, seed, inner_to);
    std::ranges::copy(bytes, reinterpret_cast<float*>(to[image_]));
  }

  void apply(std::span<std::byte* const> columns, int64_t rows, const AugmentationSeed& seed,
             int64_t first) const override {
    SplitMix64 random(SplitMix64(seed.seed, static_cast<uint64_t>(seed.epoch)).next(),
                      ~static_cast<uint64_t>(first));
    double weight = draw_beta(random, alpha_);
    if (pastes_) {
      const std::vector<int64_t>& shape = columns_[image_].shape;
      const ImageBox box = draw_box(random, weight, shape[1], shape[2]);
      if (columns[image_] != nullptr) paste(columns[image_], rows, box);
      weight = 1 - static_cast<double>(box.height * box.width) /
                       static_cast<double>(shape[1] * shape[2]);
    } else if (columns[image_] != nullptr) {
      blend(columns[image_], rows, columns_[image_].numel(), weight);
    }
    if (columns[label_] != nullptr) blend(columns[label_], rows, classes_, weight);
  }

 private:
  static void blend(std::byte* column, int64_t rows, int64_t size, double weight) {
    const auto own = static_cast<float>(weight), other = static_cast<float>(1 - weight);
    auto* values = reinterpret_cast<float*>(column);
    for (int64_t i = (rows + 1) * size - 1; i >= size; --i) {
      values[i] = values[i - size] * other + values[i] * own;
    }
  }

  void paste(std::byte* column, int64_t rows, const ImageBox& box) const {
    const std::vector<int64_t>& shape = columns_[image_].shape;
    const int64_t element = size_of(columns_[image_].dtype), bytes = columns_[image_].bytes();
    for (int64_t row = rows; row > 0; --row) {
      for (int64_t line = 0; line < shape[0] * box.height; ++line) {
        const int64_t y = line / box.height * shape[1] + box.top + line % box.height;
        std::byte* to = column + row * bytes + (y * shape[2] + box.left) * element;
        std::memcpy(to, to - bytes, static_cast<size_t>(box.width * element));
      }
    }
  }

  double alpha_;
  bool pastes_;
  size_t image_, label_;  // indices of the image and label columns in columns_
  std::vector<Column> columns_;
  int64_t classes_;
};

}  // namespace

SampleSourcePtr mixup(SampleSourcePtr source, MixOptions options) {
  return std::make_shared<MixedSource>(std::move(source), options, false);
}

SampleSourcePtr cutmix(SampleSourcePtr source, MixOptions options) {
  return std::make_shared<MixedSource>(std::move(source), options, true);
}

}  // namespace fluid
