#include "ir/print.h"

#include <set>

#include "ir/text.h"

namespace fluid::ir {
namespace {

std::string text_of(bool b) { return b ? "true" : "false"; }
std::string text_of(int64_t n) { return std::to_string(n); }
std::string text_of(double x) { return float_text(x); }
std::string text_of(const std::string& s) { return quote(s); }
std::string text_of(const Type& t) { return t.str(); }
std::string text_of(const GraphRef& g) { return graph_reference(g.name); }

template <class T>
std::string list_text(const std::vector<T>& list, std::string_view when_empty) {
  if (list.empty()) return std::string(when_empty);
  std::string s;
  for (const T& entry : list) s += (s.empty() ? "[" : ", ") + text_of(entry);
  return s + "]";
}
std::string text_of(const std::vector<int64_t>& list) { return list_text(list, "ints[]"); }
std::string text_of(const std::vector<double>& list) { return list_text(list, "floats[]"); }
std::string text_of(const std::vector<std::string>& list) { return list_text(list, "strings[]"); }

enum class Naming { numbered, by_id };

/// Assigns each value of a graph a unique name.
class ValueNames {
 public:
  ValueNames(const Graph& graph, Naming naming) {
    for (const auto& op : graph.ops) {
      for (const Result& r : op->results) taken_.insert(r.name);
    }
    std::set<std::string> used;
    for (const auto& op : graph.ops) {
      for (size_t i = 0; i < op->results.size(); ++i) {
        const std::string wanted = naming == Naming::by_id && op->results[i].name.empty()
                                       ? name_by_id(*op, i)
                                       : op->results[i].name;
        const bool keeps = is_identifier(wanted) && used.insert(wanted).second;
        names_[{op.get(), static_cast<int>(i)}] = keeps ? wanted : unique_name(wanted);
      }
    }
  }

  /// Returns the name of a value with "%", or "%?" if the value belongs to another graph. verify()
  /// rejects such values.
  std::string of(Value value) const {
    const auto it = names_.find({value.op(), value.index()});
    return "%" + (it == names_.end() ? "?" : it->second);
  }

 private:
  static std::string name_by_id(const Op& op, size_t result) {
    return op.name + "_" + std::to_string(op.id) + (result ? "." + std::to_string(result) : "");
  }

  std::string unique_name(const std::string& wanted) {
    if (!is_identifier(wanted) || wanted.size() > kMaxNameLength / 2) {
      return std::to_string(next_number_++);
    }
    for (size_t n = 2;; ++n) {
      std::string candidate = wanted + "_" + std::to_string(n);
      if (taken_.insert(candidate).second) return candidate;
    }
  }

  std::map<std::pair<const Op*, int>, std::string> names_;
  std::set<std::string> taken_;
  size_t next_number_ = 0;
};

std::string attrs_text(const Attrs& attrs) {
  std::string s;
  for (const auto& [name, attr] : attrs) s += (s.empty() ? "" : ", ") + name + " = " + print(attr);
  return s.empty() ? s : " {" + s + "}";
}

std::string annotations_text(const Op& op, int64_t expected_id) {
  std::string s;
  const auto add = [&](const std::string& annotation) {
    s += (s.empty() ? "  [" : ", ") + annotation;
  };
  if (op.role != Role::forward) add(std::string(name_of(op.role)));
  if (!op.param.empty()) add("param " + quote(op.param));
  if (!op.scope.empty()) add("scope " + quote(op.scope));
  if (op.id != expected_id) add("#" + std::to_string(op.id));
  return s.empty() ? s : s + "]";
}

std::string loc_text(const Loc& loc) {
  const std::string text = loc.str();
  return text.empty() || text.front() == ':' ? "" : "  @ " + quote(text);
}

std::string op_text(const Op& op, const ValueNames& names, int64_t expected_id) {
  std::string results;
  std::string types;
  for (size_t i = 0; i < op.results.size(); ++i) {
    results += (i ? ", " : "") + names.of({const_cast<Op*>(&op), static_cast<int>(i)});
    types += (i ? ", " : " : ") + op.results[i].type.str();
  }
  std::string operands;
  for (const Value& v : op.operands) operands += (operands.empty() ? "(" : ", ") + names.of(v);
  if (!operands.empty()) operands += ")";

  std::string s = results.empty() ? op.name : results + " = " + op.name;
  if (!op.symbol.empty()) s += " " + quote(op.symbol) + (operands.empty() ? "" : " ");
  return s + operands + attrs_text(op.attrs) + types + annotations_text(op, expected_id) +
         loc_text(op.loc);
}

std::string statements(const Graph& graph, const std::string& indent, Naming naming) {
  const ValueNames names(graph, naming);
  std::string s;
  int64_t expected_id = 0;
  for (const auto& op : graph.ops) {
    s += indent + op_text(*op, names, naming == Naming::by_id ? op->id : expected_id) + "\n";
    expected_id = op->id + 1;
  }
  for (const Output& o : graph.outputs) {
    s += indent + "output " + quote(o.name) + " = " + names.of(o.value) + "\n";
  }
  return s;
}

std::string block(const Graph& graph, const std::string& indent, Naming naming) {
  return indent + "graph " + graph_reference(graph.name) + " {\n" +
         statements(graph, indent + "  ", naming) + indent + "}\n";
}

std::string program_text(const Program& program, Naming naming) {
  std::string s = "program " + graph_reference(program.name) + " {\n" +
                  statements(program.main(), "  ", naming);
  for (const auto& graph : program.graphs) {
    if (graph.get() != &program.main()) s += block(*graph, "  ", naming);
  }
  return s + "}\n";
}

}  // namespace

std::string print(const Attr& attr) {
  return std::visit([](const auto& value) { return text_of(value); }, attr);
}

std::string print(const Graph& graph) { return block(graph, "", Naming::numbered); }

std::string print(const Program& program) { return program_text(program, Naming::numbered); }

std::string print_by_id(const Program& program) { return program_text(program, Naming::by_id); }

}  // namespace fluid::ir
