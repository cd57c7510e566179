#pragma once

#include <cstdint>
#include <string>

#include "executor/trainer/histogram.h"
#include "executor/trainer/running_means.h"
#include "frontend/images/image.h"

namespace fluid {

// The functions return serialized Event messages of TensorFlow (tensorflow/core/util/event.proto).
// `wall_time` is the time since the Unix epoch.

/// The event with the file version, which must be the first event of a file.
std::string tensorboard_version_event(double wall_time);
/// The event that starts a run. It makes TensorBoard drop values of step `first_step` and later
/// from earlier files of the directory.
std::string tensorboard_start_event(double wall_time, int64_t first_step);
/// The scalars of a step, stored as f32, the type of Summary.Value.simple_value.
std::string tensorboard_summary_event(double wall_time, int64_t step, const NamedScalars& scalars);
/// A histogram of a step.
std::string tensorboard_histogram_event(double wall_time, int64_t step, const std::string& tag,
                                        const Histogram& histogram);
/// An image of a step, stored as PNG.
std::string tensorboard_image_event(double wall_time, int64_t step, const std::string& tag,
                                    const Image& image);
/// Text, which TensorBoard renders as Markdown.
std::string tensorboard_text_event(double wall_time, int64_t step, const std::string& tag,
                                   const std::string& text);

}  // namespace fluid
