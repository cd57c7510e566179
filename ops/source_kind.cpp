#include "ops/source_kind.h"

#include <utility>

#include "ops/random/initializer.h"

namespace fluid {

SourceKind source_kind(std::string_view op_name) {
  static const std::pair<std::string_view, SourceKind> kKinds[] = {
      {"data", SourceKind::feed},    {"param", SourceKind::parameter}, {"state", SourceKind::state},
      {"arg", SourceKind::argument}, {"carried", SourceKind::carried},
  };
  for (const auto& [name, kind] : kKinds) {
    if (op_name == name) return kind;
  }
  return SourceKind::none;
}

SourceKind source_kind(const ir::Op& op) { return source_kind(op.name); }

bool is_variable(const ir::Op& op) {
  const SourceKind kind = source_kind(op);
  return kind == SourceKind::parameter || kind == SourceKind::state;
}

bool is_cache(const ir::Op& op) {
  return source_kind(op) == SourceKind::state && op.attrs.get_or(kCacheAttribute, false);
}

bool is_carry(const ir::Op& op) { return op.name == "carry"; }

}  // namespace fluid
