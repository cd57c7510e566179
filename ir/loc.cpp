#include "ir/loc.h"

#include "ir/text.h"

namespace fluid {

std::string Loc::str() const {
  if (!is_known()) return "";
  const size_t slash = file.rfind('/');
  const std::string base = slash == std::string::npos ? file : file.substr(slash + 1);
  return line > 0 ? ir::file_and_line(base, line) : base;
}

}  // namespace fluid
