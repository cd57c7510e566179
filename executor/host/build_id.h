#pragma once

#include <string>

namespace fluid {

/// Returns the build ID that the linker stored in the program or shared library that contains
/// Fluid, as hexadecimal digits. Programs that differ in code have different IDs. Empty if the
/// linker stored no ID (option --build-id).
const std::string& build_id();

}  // namespace fluid
