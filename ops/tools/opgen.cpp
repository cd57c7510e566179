// Generates ops/functions.h, ops/internal_functions.h, ops/optimizers.h, ops/schedules.h,
// ops/functions.cpp and ops/OPS.md from the op table:
//   fluid_opgen DIRECTORY

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "ops/optim/schedule.h"
#include "ops/table.h"

namespace fluid {
namespace {

constexpr std::string_view kNotice = "Generated from the op table by fluid_opgen.";

std::string number_text(double value) {
  if (std::isinf(value)) return value < 0 ? "-INFINITY" : "INFINITY";
  std::array<char, 32> text;
  std::string s(text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr);
  return s.find_first_of(".en") == std::string::npos ? s + ".0" : s;
}

/// C++ text of an attribute's type and default initialiser.
struct Spelling {
  std::string type;
  std::string initial;
};

template <class List, class Text>
std::string braced(const List& list, Text text) {
  std::string s;
  for (const auto& item : list) s += (s.empty() ? "" : ", ") + text(item);
  return "{" + s + "}";
}

Spelling spelling_of(const Attr& attr) {
  const auto quoted = [](const std::string& s) { return "\"" + s + "\""; };
  const auto integer = [](int64_t i) { return std::to_string(i); };
  switch (attr.index()) {
    case 0:
      return {"bool", std::get<bool>(attr) ? "true" : "false"};
    case 1:
      return {"int64_t", integer(std::get<int64_t>(attr))};
    case 2:
      return {"double", number_text(std::get<double>(attr))};
    case 3:
      return {"std::string", quoted(std::get<std::string>(attr))};
    case 4:
      return {"Type", "{}"};
    case 5:
      return {"GraphRef", "{}"};
    case 6:
      return {"Ints", braced(std::get<std::vector<int64_t>>(attr), integer)};
    case 7:
      return {"std::vector<double>", braced(std::get<std::vector<double>>(attr), number_text)};
    default:
      return {"std::vector<std::string>", braced(std::get<std::vector<std::string>>(attr), quoted)};
  }
}

/// Returns the default value of an attribute as OPS.md shows it. A list is written as in a .fir
/// file.
std::string default_text(const AttrDef& a) {
  if (a.required) return "required";
  std::string text = spelling_of(a.fallback).initial;
  if (std::holds_alternative<std::vector<int64_t>>(a.fallback) ||
      std::holds_alternative<std::vector<double>>(a.fallback) ||
      std::holds_alternative<std::vector<std::string>>(a.fallback)) {
    text.front() = '[';
    text.back() = ']';
  }
  return "`" + text + "`";
}

bool has_function(const OpDef& def) {
  return std::holds_alternative<Map>(*def.lower) || std::holds_alternative<Reduce>(*def.lower) ||
         std::holds_alternative<Loops>(*def.lower) || std::holds_alternative<Expand>(*def.lower) ||
         std::holds_alternative<Alias>(*def.lower) ||
         std::holds_alternative<GradientsOp>(*def.lower);
}

/// Returns the attributes that are parameters of the generated function. Omits attribute `stream`
/// of a random op, which record() sets.
std::vector<AttrDef> shown_attrs(const OpDef& def) {
  std::vector<AttrDef> shown;
  for (const AttrDef& a : *def.attrs) {
    if (a.name != "stream" || !std::holds_alternative<Random>(*def.effects)) shown.push_back(a);
  }
  return shown;
}

std::string camel(const std::string& name) {
  std::string s;
  bool up = true;
  for (const char ch : name) {
    if (ch != '_') s += up ? static_cast<char>(std::toupper(ch)) : ch;
    up = ch == '_';
  }
  return s;
}

/// Whether the generated function returns a single Value, because all results except the first are
/// auxiliary.
bool returns_single_value(const OpDef& def) {
  if (def.outputs->back().variadic) return false;
  return std::all_of(def.outputs->begin() + 1, def.outputs->end(),
                     [](const PortDef& p) { return p.auxiliary; });
}

std::string signature(const OpDef& def, size_t operands, bool defaults) {
  std::vector<std::string> parameters;
  if (operands == 0) parameters.push_back("ir::Graph& graph");
  for (size_t i = 0; i < operands; ++i) {
    const PortDef& p = (*def.inputs)[i];
    parameters.push_back((p.variadic ? "const Values& " : "Value ") + p.name);
  }
  if (!shown_attrs(def).empty()) {
    bool required = false;
    for (const AttrDef& a : shown_attrs(def)) required = required || a.required;
    parameters.push_back("const " + camel(*def.name) + "Attrs& attrs" +
                         (defaults && !required ? " = {}" : ""));
  }
  parameters.push_back(defaults ? "const Loc& loc = Loc::here()" : "const Loc& loc");
  std::string s = (returns_single_value(def) ? "Value " : "Values ") + *def.name + "(";
  for (size_t i = 0; i < parameters.size(); ++i) s += (i ? ", " : "") + parameters[i];
  return s + ")";
}

/// Returns the C++ declaration of an attribute's field in a generated struct.
std::string field_text(const AttrDef& a) {
  const Spelling s = spelling_of(a.fallback);
  return a.required ? " Required<" + s.type + "> " + a.name + ";"
                    : " " + s.type + " " + a.name + " = " + s.initial + ";";
}

/// Returns the C++ expression that reads an attribute from its field in `object`, a generated
/// struct.
std::string value_text(const AttrDef& a, const std::string& object) {
  const std::string value = (a.required ? "*" : "") + object + "." + a.name;
  const bool ints = std::holds_alternative<std::vector<int64_t>>(a.fallback);
  return ints ? "std::vector<int64_t>(" + value + ")" : value;
}

/// Returns the operand counts for which overloads are generated. Optional operands may be omitted.
std::vector<size_t> operand_counts(const OpDef& def) {
  std::vector<size_t> counts;
  size_t needed = 0;
  for (const PortDef& p : *def.inputs) needed += p.optional ? 0 : 1;
  for (size_t n = needed; n <= def.inputs->size(); ++n) counts.push_back(n);
  return counts;
}

std::string_view name_space(bool internal) { return internal ? "fluid::internal" : "fluid"; }

// Writes the header of the generated functions. Each struct and function takes one line, so that
// branches that add ops merge without conflicts.
void write_header(std::ostream& out, bool internal) {
  out << "// " << kNotice << "\n// clang-format off\n#pragma once\n\n";
  if (internal) out << "// Functions of the ops that are not for users.\n\n";
  out << "#include <cmath>\n\n#include \"ops/ints.h\"\n#include \"ops/record.h\"\n#include "
         "\"ops/required.h\"\n\n"
      << "namespace " << name_space(internal) << " {\n";
  for (const OpDef& def : op_table()) {
    if (!has_function(def) || def.internal != internal) continue;
    out << "\n";
    out << "/// " << *def.doc << "\n";
    for (const PortDef& p : *def.inputs) out << "/// " << p.name << ": " << p.doc << ".\n";
    for (const AttrDef& a : shown_attrs(def)) {
      out << "/// attrs." << a.name << ": " << a.doc << (a.required ? " (required)" : "") << ".\n";
    }
    for (const PortDef& p : *def.outputs) out << "/// Gives " << p.name << ": " << p.doc << ".\n";
    if (!shown_attrs(def).empty()) {
      out << "struct " << camel(*def.name) << "Attrs {";
      for (const AttrDef& a : shown_attrs(def)) out << field_text(a);
      out << " };\n";
    }
    for (const size_t n : operand_counts(def)) out << signature(def, n, true) << ";\n";
  }
  out << "\n}  // namespace " << name_space(internal) << "\n";
}

/// Writes the C++ structs of the optimizers' settings.
void write_optimizers(std::ostream& out) {
  out << "// " << kNotice << "\n// clang-format off\n#pragma once\n\n#include \"ir/graph.h\"\n\n"
      << "namespace fluid {\n";
  for (const OpDef& def : op_table()) {
    if (!def.optimizer) continue;
    const std::string& type = def.optimizer->type;
    out << "\n/// " << *def.doc << "\n/// lr: learning rate.\n";
    for (const AttrDef& a : *def.attrs) out << "/// " << a.name << ": " << a.doc << ".\n";
    out << "struct " << type << " { double lr = " << number_text(def.optimizer->lr) << ";";
    for (const AttrDef& a : *def.attrs) out << field_text(a);
    out << " };\n/// Attributes of the op `train` that configure the optimizer.\n"
        << "Attrs recipe_of(const " << type << "& optimizer);\n";
  }
  out << "\n}  // namespace fluid\n";
}

void write_recipe(std::ostream& out, const OpDef& def) {
  out << "\nAttrs recipe_of(const " << def.optimizer->type << "& o) { return {{\"lr\", o.lr}";
  for (const AttrDef& a : *def.attrs) {
    out << ", {\"" << a.name << "\", " << value_text(a, "o") << "}";
  }
  out << ", {\"optimizer\", std::string(\"" << *def.name << "\")}}; }\n";
}

/// Returns the attributes of a schedule's op that are settings: all but `lr`.
std::vector<AttrDef> schedule_fields(const OpDef& def) {
  return {def.attrs->begin() + 1, def.attrs->end()};
}

/// Writes the C++ structs of the schedules' settings.
void write_schedules(std::ostream& out) {
  out << "// " << kNotice << "\n// clang-format off\n#pragma once\n\n#include \"ir/graph.h\"\n"
      << "#include \"ops/ints.h\"\n#include \"ops/required.h\"\n\nnamespace fluid {\n";
  for (const OpDef& def : op_table()) {
    if (!is_schedule(def)) continue;
    out << "\n/// Schedule of the learning rate. " << *def.doc << "\n";
    for (const AttrDef& a : schedule_fields(def)) {
      out << "/// " << a.name << ": " << a.doc << (a.required ? " (required)" : "") << ".\n";
    }
    out << "struct " << def.schedule->type << " {";
    for (const AttrDef& a : schedule_fields(def)) out << field_text(a);
    out << " };\n/// Attributes of the op `train` for the schedule.\n"
        << "Attrs schedule_attrs_of(const " << def.schedule->type << "& schedule);\n";
  }
  out << "\n}  // namespace fluid\n";
}

void write_schedule_attrs(std::ostream& out, const OpDef& def) {
  const std::vector<AttrDef> fields = schedule_fields(def);
  out << "\nAttrs schedule_attrs_of(const " << def.schedule->type << "&"
      << (fields.empty() ? "" : " s") << ") { return {{\"schedule\", std::string(\""
      << schedule_name(def) << "\")}";
  for (const AttrDef& a : fields) {
    out << ", {\"" << kSchedulePrefix << a.name << "\", " << value_text(a, "s") << "}";
  }
  out << "}; }\n";
}

std::string attrs_text(const OpDef& def) {
  std::string s;
  for (const AttrDef& a : shown_attrs(def)) {
    s += (s.empty() ? "" : ", ") + std::string("{\"") + a.name + "\", " + value_text(a, "attrs") +
         "}";
  }
  return "{" + s + "}";
}

void write_body(std::ostream& out, const OpDef& def, size_t operands) {
  const std::string name = *def.name;
  out << "\n" << signature(def, operands, false) << " {";
  const bool variadic = operands > 0 && (*def.inputs)[operands - 1].variadic;
  std::string fixed;
  for (size_t i = 0; i < operands - (variadic ? 1 : 0); ++i) {
    fixed += (fixed.empty() ? "" : ", ") + (*def.inputs)[i].name;
  }
  std::string values = "{" + fixed + "}";
  if (variadic) {
    const std::string& rest = (*def.inputs)[operands - 1].name;
    out << " Values operands = " << values << "; operands.insert(operands.end(), " << rest
        << ".begin(), " << rest << ".end());";
    values = "operands";
  }
  size_t needed = 0;
  for (const PortDef& p : *def.inputs) needed += p.optional || p.variadic ? 0 : 1;
  std::string first = variadic ? "operands" : needed == 0 ? values : "{";
  for (size_t i = 0; !variadic && i < needed; ++i) {
    first += (i ? ", " : "") + (*def.inputs)[i].name;
  }
  if (!variadic && needed > 0) first += "}";
  const std::string graph =
      operands == 0 ? "graph" : "graph_of(" + first + ", \"" + name + "\", loc)";
  out << " return record(" << graph << ", \"" << name << "\", " << values << ", " << attrs_text(def)
      << ", loc)" << (returns_single_value(def) ? ".at(0)" : "") << "; }\n";
}

void write_source(std::ostream& out) {
  out << "// " << kNotice << "\n// clang-format off\n#include \"ops/functions.h\"\n\n"
      << "#include \"ops/internal_functions.h\"\n#include \"ops/optimizers.h\"\n"
      << "#include \"ops/schedules.h\"\n";
  for (const bool internal : {false, true}) {
    out << "\nnamespace " << name_space(internal) << " {\n";
    for (const OpDef& def : op_table()) {
      if (!internal && def.optimizer) write_recipe(out, def);
      if (!internal && is_schedule(def)) write_schedule_attrs(out, def);
      if (!has_function(def) || def.internal != internal) continue;
      for (const size_t n : operand_counts(def)) write_body(out, def, n);
    }
    out << "\n}  // namespace " << name_space(internal) << "\n";
  }
}

std::string lower_text(const Lower& lower) {
  static constexpr std::array<std::string_view, std::variant_size_v<Lower>> kNames = {
      "map",
      "reduction",
      "kernel of its own",
      "expands into other ops",
      "alias of its operand",
      "source",
      "store",
      "directive to the passes",
      "gradients of operand 0",
      "composite",
      "repeats its body",
      "collective"};
  return std::string(kNames.at(lower.index()));
}

std::string effects_text(const Effects& effects) {
  static constexpr std::array<std::string_view, std::variant_size_v<Effects>> kNames = {
      "pure", "random", "updates variables", "collective", "metric (sum, weight)"};
  return std::string(kNames.at(effects.index()));
}

void write_ports(std::ostream& out, std::string_view title, const std::vector<PortDef>& ports) {
  for (const PortDef& p : ports) {
    out << "- " << title << " `" << p.name
        << (p.variadic   ? "..."
            : p.optional ? "?"
                         : "")
        << "`: " << p.doc << "\n";
  }
}

void write_markdown(std::ostream& out) {
  out << "# Ops\n\n"
      << kNotice << " `?` marks an optional operand, `...` a variadic "
      << "operand or result. [What is checked for each op](../tests/golden/op_checks.md).\n";
  for (const OpDef& def : op_table()) {
    static constexpr std::array<std::string_view, 3> kAmp = {"half", "f32", "follows its operands"};
    out << "\n## " << *def.name << "\n" << *def.doc << "\n\n";
    write_ports(out, "operand", *def.inputs);
    for (const AttrDef& a : *def.attrs) {
      out << "- attribute `" << a.name << "` (" << attr_type_name(a.fallback) << ", "
          << default_text(a) << "): " << a.doc << "\n";
    }
    write_ports(out, "result", *def.outputs);
    out << "- " << lower_text(*def.lower) << "; " << effects_text(*def.effects) << "; "
        << (std::holds_alternative<NoGrad>(*def.grad) ? "no gradient" : "differentiable")
        << "; mixed precision: " << kAmp[def.amp.amp_class] << "; version " << *def.version;
    for (const LibraryKernel& k : *def.kernels) out << "; `" << k.name << "`";
    if (def.internal) out << "; not for users";
    out << "\n";
  }
}

/// Writes `text` to `path`. Does not touch a file that already has these contents, so that its
/// dependents are not rebuilt.
void write_file(const std::string& path, const std::string& text) {
  std::stringstream old;
  old << std::ifstream(path).rdbuf();
  if (old.str() == text) return;
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) throw UserError("cannot write " + path);
}

void generate(const std::string& directory) {
  std::stringstream header, internal, optimizers, schedules, source, markdown;
  write_header(header, false);
  write_header(internal, true);
  write_optimizers(optimizers);
  write_schedules(schedules);
  write_source(source);
  write_markdown(markdown);
  write_file(directory + "/functions.h", header.str());
  write_file(directory + "/internal_functions.h", internal.str());
  write_file(directory + "/optimizers.h", optimizers.str());
  write_file(directory + "/schedules.h", schedules.str());
  write_file(directory + "/functions.cpp", source.str());
  write_file(directory + "/OPS.md", markdown.str());
}

}  // namespace
}  // namespace fluid

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: fluid_opgen DIRECTORY\n", stderr);
    return 1;
  }
  for (const std::string& error : fluid::op_table_errors(fluid::op_table())) {
    std::fprintf(stderr, "%s\n", error.c_str());
    return 2;
  }
  try {
    fluid::generate(argv[1]);
  } catch (const fluid::UserError& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
