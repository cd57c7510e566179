#pragma once

#include <string>

namespace fluid {

/// Replaces the names of C++ options in an error message of the library, such as
/// CheckpointingOptions::resume, by the flags of fluidrun that set them: --resume. Leaves text in
/// quotes as it is.
std::string with_flag_names(std::string message);

}  // namespace fluid
