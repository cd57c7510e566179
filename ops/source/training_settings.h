#pragma once

namespace fluid {

/// Name of a bool attribute of a `state` op. A training step reads such a state and does not write
/// it. Ops that read it and have an inference form, such as batch_norm, take this form.
inline constexpr const char* kFrozenAttribute = "frozen";

/// Names of the attributes of `param` and `state` ops that change how training updates the
/// variable, but not what the program computes.
inline constexpr const char* kTrainingSettings[] = {
    "trainable", "lr_scale", "weight_decay", "decay_scale",
    "l1",        "l2",       "max_norm",     kFrozenAttribute};

}  // namespace fluid
