#pragma once

#include <string>

namespace fluid {

/// Formats a byte count as "12.34 MiB", or as "100 B" below 1024.
std::string bytes_text(double bytes);

}  // namespace fluid
