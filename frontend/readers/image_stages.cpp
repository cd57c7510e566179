#include "frontend/readers/image_stages.h"

#include <array>

#include "frontend/readers/forwarded_data.h"
#include "frontend/readers/image_files.h"
#include "ir/error.h"

namespace fluid {
namespace {

bool holds_images(const Column& column) {
  return column.dtype == DType::u8 && column.shape.size() == 3 &&
         (column.shape[0] == 1 || column.shape[0] == 3);
}

size_t image_column_of(const SampleSource& source) {
  std::string columns;
  for (size_t c = 0; c < source.columns().size(); ++c) {
    if (holds_images(source.columns()[c])) return c;
    columns += (columns.empty() ? "" : ", ") + source.columns()[c].str();
  }
  throw UserError("stages need a column of images, u8[3, H, W] or u8[1, H, W]; there are " +
                  columns);
}

std::string size_text(int64_t height, int64_t width) {
  return std::to_string(height) + "x" + std::to_string(width);
}

/// Normalised values of a channel, indexed by the 8-bit value.
using ChannelValues = std::array<float, 256>;

std::vector<ChannelValues> normalized_values(const Normalization& normalize, int64_t channels) {
  const auto value = [&](const std::vector<double>& values, const char* name, int64_t channel) {
    const auto count = static_cast<int64_t>(values.size());
    if (count != 1 && count != channels) {
      throw UserError(std::string("normalize: ") + name + " has " + std::to_string(count) +
                      " values, but the images have " + std::to_string(channels) + " channels");
    }
    return static_cast<float>(values[static_cast<size_t>(count == 1 ? 0 : channel)]);
  };
  std::vector<ChannelValues> tables(static_cast<size_t>(channels));
  for (int64_t c = 0; c < channels; ++c) {
    const float mean = value(normalize.mean, "mean", c), std = value(normalize.std, "std", c);
    if (!(std > 0)) throw UserError("normalize: a std must be positive");
    for (size_t i = 0; i < 256; ++i) {
      tables[static_cast<size_t>(c)][i] = (static_cast<float>(i) * (1 / 255.f) - mean) / std;
    }
  }
  return tables;
}

class AugmentedSource : public ForwardedSource {
 public:
  AugmentedSource(SampleSourcePtr inner, ImageStages stages)
      : ForwardedSource(std::move(inner)),
        stages_(std::move(stages.stages)),
        image_column_(image_column_of(*inner_)),
        columns_(inner_->columns()) {
    const Image first =
        first_image(samples(), [this](int64_t sample) { return image(sample, image_column_, {}); });
    Column& column = columns_[image_column_];
    column.shape = {first.channels, first.height, first.width};
    if (!stages.normalize) return;
    values_ = normalized_values(*stages.normalize, first.channels);
    column.dtype = DType::f32;
  }

  const std::vector<Column>& columns() const override { return columns_; }

  void read(int64_t sample, const AugmentationSeed& seed,
            std::span<std::byte* const> to) const override {
    std::vector<std::byte*> others(to.begin(), to.end());
    others[image_column_] = nullptr;
    inner_->read(sample, seed, others);
    if (to[image_column_] == nullptr) return;
    const Image changed = image(sample, image_column_, seed);
    check_size(changed, sample);
    write(changed, to[image_column_]);
  }

  Image image(int64_t sample, size_t column, const AugmentationSeed& seed) const override {
    Image image = inner_->image(sample, column, seed);
    if (column != image_column_) return image;
    SplitMix64 random(SplitMix64(seed.seed, static_cast<uint64_t>(seed.epoch)).next(),
                      static_cast<uint64_t>(inner_->source_index(sample)));
    try {
      for (const augment::Stage& stage : stages_) stage(image, random);
    } catch (const UserError& error) {
      throw UserError(inner_->location(sample) + ": " + error.what());
    }
    return image;
  }

  std::string find_location(const std::string& column, int64_t value) const override {
    return inner_->find_location(column, value);
  }

 private:
  void check_size(const Image& image, int64_t sample) const {
    const std::vector<int64_t>& shape = columns_[image_column_].shape;
    if (image.channels == shape[0] && image.height == shape[1] && image.width == shape[2]) return;
    throw UserError(inner_->location(sample) + ": the image is " +
                    size_text(image.height, image.width) + " after the stages, but the first is " +
                    size_text(shape[1], shape[2]) + ": add |resize=HxW or a crop");
  }

  void write(const Image& image, std::byte* to) const {
    const size_t bytes = image.pixels.size();
    if (values_.empty()) return image.copy_to_chw({reinterpret_cast<uint8_t*>(to), bytes});
    auto* out = reinterpret_cast<float*>(to);
    const int64_t plane = image.height * image.width;
    for (int64_t c = 0; c < image.channels; ++c) {
      const ChannelValues& value = values_[static_cast<size_t>(c)];
      const uint8_t* from = image.pixels.data() + c;
      for (int64_t i = 0; i < plane; ++i) *out++ = value[from[i * image.channels]];
    }
  }

  std::vector<augment::Stage> stages_;
  size_t image_column_;
  std::vector<Column> columns_;
  std::vector<ChannelValues> values_;  // one per channel; empty: no normalisation
};

}  // namespace

SampleSourcePtr augment_images(SampleSourcePtr source, ImageStages stages) {
  return std::make_shared<AugmentedSource>(std::move(source), std::move(stages));
}

}  // namespace fluid
