#pragma once

#include <optional>
#include <vector>

#include "frontend/images/augment.h"
#include "frontend/readers/sample_source.h"

namespace fluid {

/// Scales an image to [0, 1], subtracts `mean` and divides by `std`, by channel, as torchvision's
/// ToDtype(float32, scale=True) and Normalize do. A single value applies to all channels.
struct Normalization {
  std::vector<double> mean, std;
};

/// Options of augment_images().
struct ImageStages {
  std::vector<augment::Stage> stages;
  std::optional<Normalization> normalize = {};  ///< makes the column f32; nullopt: keeps u8
};

/// Returns `source` with the stages applied to its image column, the first column u8[1, H, W] or
/// u8[3, H, W]. All images must have one size after the stages. The random choices depend on
/// SampleData::source_index(), the seed of the Reader and the epoch. Throws UserError if there is
/// no image column, if a stage does not fit the first image, or if a standard deviation is 0. Also
/// throws UserError if `normalize` and the images differ in the number of channels.
SampleSourcePtr augment_images(SampleSourcePtr source, ImageStages stages);

/// Options of mixup() and cutmix().
struct MixOptions {
  double alpha = 1;     ///< the weight is drawn from Beta(alpha, alpha), alpha > 0
  int64_t classes = 0;  ///< number of classes; 0: the number of SampleData::classes()
};

/// Applies mixup to the batches of `source`, like torchvision.transforms.v2.MixUp. An image becomes
/// weight * image + (1 - weight) * the image of the previous sample of the global batch. The image
/// column becomes f32; the class column `label` becomes f32[classes]. Throws UserError if there is
/// no image column, if there is no integer column with classes, and if alpha is not positive.
SampleSourcePtr mixup(SampleSourcePtr source, MixOptions options = {});
/// Like mixup(), but pastes a rectangle of the previous image (torchvision.transforms.v2.CutMix).
/// Does not change the dtype of the image column.
SampleSourcePtr cutmix(SampleSourcePtr source, MixOptions options = {});

}  // namespace fluid
