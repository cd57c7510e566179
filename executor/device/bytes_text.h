#pragma once

#include <string>

namespace fluid {

std::string bytes_text(double bytes);  ///< "12.34 MiB"; below 1024: "100 B"

}  // namespace fluid
