#pragma once

#include <functional>

#include "frontend/readers/sample_source.h"

namespace fluid {

/// Returns the first image of decode(0), ..., decode(samples - 1) that can be decoded. Throws
/// UserError if all images, or the first hundred images, are damaged.
Image first_image(int64_t samples, const std::function<Image(int64_t)>& decode);

/// A source of labelled image files: columns image u8[3, H, W] and label i64. H and W are those of
/// the first image that can be decoded.
class ImageFiles : public SampleSource {
 public:
  static constexpr const char* kImageColumn = "image";
  static constexpr const char* kLabelColumn = "label";

  const std::vector<Column>& columns() const override { return columns_; }
  void read(int64_t sample, const AugmentationSeed& seed,
            std::span<std::byte* const> to) const override;
  Image image(int64_t sample, size_t column, const AugmentationSeed& seed) const override;

 protected:
  virtual int64_t label(int64_t sample) const = 0;
  virtual Image decode(int64_t sample) const = 0;
  /// Sets the shape of the column `image` to the shape of the first image that can be decoded.
  /// Derived classes call set_image_type() at the end of their constructors.
  void set_image_type();

 private:
  std::vector<Column> columns_ = {{kImageColumn, DType::u8, {3, 0, 0}},
                                  {kLabelColumn, DType::i64, {}}};
};

}  // namespace fluid
