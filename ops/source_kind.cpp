#include "ops/source_kind.h"

#include <utility>

namespace fluid {

SourceKind source_kind(const ir::Op& op) {
  static const std::pair<std::string_view, SourceKind> kKinds[] = {
      {"data", SourceKind::feed},
      {"param", SourceKind::parameter},
      {"state", SourceKind::state},
      {"arg", SourceKind::argument},
  };
  for (const auto& [name, kind] : kKinds) {
    if (op.name == name) return kind;
  }
  return SourceKind::none;
}

bool is_variable(const ir::Op& op) {
  const SourceKind kind = source_kind(op);
  return kind == SourceKind::parameter || kind == SourceKind::state;
}

}  // namespace fluid
