#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "frontend/images/augment.h"
#include "frontend/readers/sample_source.h"

namespace fluid {

/// Applies the stages of a data SPEC to `source`:
/// "resized_crop=224|flip|normalize,mean=0.5,std=0.5". A stage is NAME, NAME=VALUE or
/// NAME=VALUE,option=value. Throws UserError, which names `spec`, for an unknown stage or option,
/// for a malformed value, and for the errors of augment_images(), mixup(), cutmix() and one_hot().
SampleSourcePtr apply_stages(SampleSourcePtr source, std::string_view stages,
                             const std::string& spec);

/// Returns the names of those of `stages` that change samples at random. A crop to the whole image,
/// for example, does not. `image`: size of all images before the stages; 0: it varies. `spec`: as
/// for apply_stages(), which throws the same errors.
std::vector<std::string> random_stages(std::string_view stages, augment::Size image,
                                       const std::string& spec);

/// The help text of the stages, one line per stage.
std::string stages_help();

}  // namespace fluid
