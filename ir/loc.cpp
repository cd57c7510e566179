#include "ir/loc.h"

namespace fluid {

std::string Loc::str() const {
  if (!known()) return "";
  const size_t slash = file.rfind('/');
  const std::string base = slash == std::string::npos ? file : file.substr(slash + 1);
  return line > 0 ? base + ":" + std::to_string(line) : base;
}

}  // namespace fluid
