#include "ops/arguments.h"

#include <algorithm>

#include "ops/no_amp.h"
#include "ops/random/initializer.h"
#include "ops/source_kind.h"

namespace fluid {

std::vector<Type> operand_types(const std::vector<Value>& operands) {
  std::vector<Type> types;
  for (const Value& v : operands) types.push_back(v.type());
  return types;
}

Type without_layout(Type type) {
  type.layout.reset();
  return type;
}

std::vector<Type> without_layouts(std::vector<Type> types) {
  for (Type& t : types) t.layout.reset();
  return types;
}

std::vector<Type> result_types(const ir::Op& op) {
  std::vector<Type> types;
  for (const ir::Result& r : op.results) types.push_back(r.type);
  return types;
}

std::string to_string(const std::vector<Type>& types) {
  std::string s;
  for (const Type& t : types) s += (s.empty() ? "" : ", ") + t.str();
  return "(" + s + ")";
}

void check_arity(const OpDef& def, const std::vector<Value>& operands, const Loc& loc) {
  const std::vector<PortDef>& ports = *def.inputs;
  const auto needed = static_cast<size_t>(
      std::count_if(ports.begin(), ports.end(), [](const PortDef& p) { return !p.optional; }));
  const bool variadic = !ports.empty() && ports.back().variadic;
  if (operands.size() >= needed && (variadic || operands.size() <= ports.size())) return;
  std::string names;
  for (const PortDef& p : ports) {
    names += (names.empty() ? "" : ", ") + p.name + (p.variadic ? "..." : p.optional ? "?" : "");
  }
  throw UserError(
      loc, *def.name + ": takes operands (" + names + "), not " + std::to_string(operands.size()));
}

namespace {

const AttrDef* find_attr(const OpDef& def, std::string_view name) {
  for (const AttrDef& a : *def.attrs) {
    if (a.name == name) return &a;
  }
  return nullptr;
}

}  // namespace

bool is_pass_attribute(std::string_view name) {
  static constexpr std::string_view kNames[] = {"arena",         "workspace",     "kernel",
                                                "part_of",       "error_sync",    "group",
                                                "group_results", "read_by_others"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

namespace {

void check_known(const OpDef& def, const Attrs::Entry& given, const Loc& loc) {
  static const AttrDef kCommon = {std::string(kNoAmp), false, "stays f32 in mixed precision"};
  const AttrDef* attr = given.first == kNoAmp ? &kCommon : find_attr(def, given.first);
  if (attr == nullptr) {
    if (def.open_attrs || is_pass_attribute(given.first)) return;
    std::vector<std::string> names;
    for (const AttrDef& a : *def.attrs) names.push_back(a.name);
    throw UserError(
        loc, *def.name + ": no attribute '" + given.first + "'" + did_you_mean(given.first, names));
  }
  if (attr->fallback.index() != given.second.index()) {
    throw UserError(loc, *def.name + ": attribute '" + given.first + "' must be of kind " +
                             std::string(attr_type_name(attr->fallback)) + ", not " +
                             std::string(attr_type_name(given.second)));
  }
}

/// Converts `given` to the type of `like`: an int to a float, a list of ints to a list of floats,
/// or an empty list to a list of any type. Returns any other value unchanged.
Attr converted(const Attr& given, const Attr& like) {
  if (given.index() == like.index()) return given;
  if (const auto* i = std::get_if<int64_t>(&given); i != nullptr && like.index() == 2) {
    return static_cast<double>(*i);
  }
  const auto* ints = std::get_if<std::vector<int64_t>>(&given);
  if (ints != nullptr && std::holds_alternative<std::vector<double>>(like)) {
    return std::vector<double>(ints->begin(), ints->end());
  }
  if (ints != nullptr && ints->empty() && std::holds_alternative<std::vector<std::string>>(like)) {
    return std::vector<std::string>();
  }
  return given;
}

}  // namespace

void check_attrs(const OpDef& def, const Attrs& attrs, const Loc& loc) {
  for (const Attrs::Entry& e : attrs) check_known(def, e, loc);
  for (const AttrDef& a : *def.attrs) {
    if (!attrs.has(a.name) && (a.required || !def.open_attrs)) {
      throw UserError(loc, *def.name + ": needs attribute '" + a.name + "' (" + a.doc + ")");
    }
  }
}

void check_source(const OpDef& def, const std::string& symbol, const Type& type, const Attrs& attrs,
                  const Loc& loc) {
  const std::vector<Type> declared = without_layouts({type});
  (*def.infer)(InferCtx(*def.name, declared, attrs, loc));
  for (const Dim& dim : type.shape) {
    if (dim.size >= 0) continue;
    throw UserError(loc, *def.name + ": the shape " + type.shape.str() + " of '" + symbol +
                             "' has a negative dimension");
  }
  const SourceKind kind = source_kind(*def.name);
  if (kind != SourceKind::parameter && kind != SourceKind::state) return;
  if (!type.shape.is_constant()) {
    throw UserError(loc, *def.name + ": the shape of a variable, " + type.shape.str() +
                             ", cannot depend on the " +
                             (type.shape.has_batch() ? "batch" : "length"));
  }
  check_initializer(symbol, declared[0], attrs, loc);
}

Attrs complete_attrs(const OpDef& def, const Attrs& given, const Loc& loc) {
  Attrs complete;
  for (const AttrDef& a : *def.attrs) {
    if (const Attr* attr = given.find(a.name)) {
      complete.set(a.name, converted(*attr, a.fallback));
    } else if (!a.required && !def.open_attrs) {
      complete.set(a.name, a.fallback);
    }
  }
  for (const auto& [name, attr] : given) {
    if (!complete.has(name)) complete.set(name, attr);
  }
  check_attrs(def, complete, loc);
  return complete;
}

}  // namespace fluid
