#include "ir/length.h"

#include <algorithm>

namespace fluid::ir {

bool has_length(const Attrs& attrs) {
  return std::ranges::any_of(attrs, [](const Attrs::Entry& entry) {
    const Type* type = std::get_if<Type>(&entry.second);
    return type != nullptr && type->shape.has_length();
  });
}

bool has_length(const Op& op) {
  return has_length(op.attrs) ||
         std::ranges::any_of(op.results, [](const Result& r) { return r.type.shape.has_length(); });
}

bool has_length(const Program& program) {
  return std::ranges::any_of(program.graphs, [](const auto& graph) {
    return std::ranges::any_of(graph->ops, [](const auto& op) { return has_length(*op); });
  });
}

Attrs at_length(Attrs attrs, int64_t length) {
  for (const auto& [name, attr] : Attrs(attrs)) {
    const Type* type = std::get_if<Type>(&attr);
    if (type != nullptr && type->shape.has_length()) attrs.set(name, type->at_length(length));
  }
  return attrs;
}

}  // namespace fluid::ir
