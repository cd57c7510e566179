#pragma once

namespace fluid {

/// Name of a bool attribute of a `state` op. Training steps read such a state but do not update it.
/// In training, an op such as batch_norm that reads the state runs in inference mode
/// (OpDef::inference).
inline constexpr const char* kFrozenAttribute = "frozen";

/// Names of the attributes of `param` and `state` ops that change how training updates the
/// variable, but not what the program computes.
inline constexpr const char* kTrainingSettings[] = {
    "trainable", "lr_scale", "weight_decay", "decay_scale",
    "l1",        "l2",       "max_norm",     kFrozenAttribute};

}  // namespace fluid
