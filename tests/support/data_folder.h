#pragma once

#include <cstdlib>
#include <string>

namespace fluid {

/// Where real data is: $FLUID_DATA, by default beside the source tree. It need not be there.
inline std::string data_folder() {
  const char* folder = std::getenv("FLUID_DATA");
  return folder != nullptr ? folder : FLUID_SOURCE_DIR "/../shared/data";
}

}  // namespace fluid
