#pragma once

namespace fluid {

/// Name of a bool attribute of a `state` op. If it is true, training steps read the state but do
/// not update it. During training, an op such as batch_norm that reads the state then runs in
/// inference mode (OpDef::inference).
inline constexpr const char* kFrozenAttribute = "frozen";

/// Name of a bool attribute of `param` and `state` ops. If it is true, the variable is saved with
/// the LoRA adapters of the program, even if it is frozen.
inline constexpr const char* kSavedWithLora = "saved_with_lora";

/// Names of the attributes of `param` and `state` ops that change how training updates the
/// variable, but not what the program computes.
inline constexpr const char* kTrainingSettings[] = {
    "trainable", "lr_scale", "weight_decay",   "decay_scale", "l1",
    "l2",        "max_norm", kFrozenAttribute, kSavedWithLora};

}  // namespace fluid
