#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "executor/fluidrun/command.h"
#include "executor/fluidrun/diagram.h"
#include "executor/fluidrun/flags.h"
#include "executor/fluidrun/help.h"
#include "executor/fluidrun/inputs.h"
#include "ir/atomic_file.h"
#include "ir/error.h"
#include "ir/text.h"

namespace fluid {
namespace {

struct ShowFlags {
  std::string program, format, output;
  std::optional<int64_t> length;
};

/// JSON for an attribute value. Infinities and NaN become strings, because JSON cannot represent
/// them.
nlohmann::ordered_json value_json(double x) {
  if (std::isfinite(x)) return x;
  return ir::float_text(x);
}
nlohmann::ordered_json value_json(const Type& type) { return type.str(); }
nlohmann::ordered_json value_json(const GraphRef& graph) { return graph.name; }
template <class T>
nlohmann::ordered_json value_json(const T& value) {
  return value;
}
nlohmann::ordered_json value_json(const std::vector<double>& list) {
  auto json = nlohmann::ordered_json::array();
  for (const double x : list) json.push_back(value_json(x));
  return json;
}

nlohmann::ordered_json op_json(const ir::Op& op, std::map<Value, int>& ids) {
  nlohmann::ordered_json json = {{"op", op.name}};
  if (!op.symbol.empty()) json["symbol"] = op.symbol;
  json["operands"] = nlohmann::ordered_json::array();
  for (const Value& v : op.operands) json["operands"].push_back(ids.at(v));
  for (const auto& [name, attr] : op.attrs) {
    json["attrs"][name] = std::visit([](const auto& value) { return value_json(value); }, attr);
  }
  json["results"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < op.results.size(); ++i) {
    const int id = static_cast<int>(ids.size());
    ids.emplace(Value(const_cast<ir::Op*>(&op), static_cast<int>(i)), id);
    json["results"].push_back({{"id", id}, {"type", op.results[i].type.str()}});
  }
  json["role"] = ir::name_of(op.role);
  if (!op.scope.empty()) json["scope"] = op.scope;
  if (op.loc.is_known()) json["loc"] = op.loc.str();
  return json;
}

std::string to_json(const ir::Program& program) {
  nlohmann::ordered_json json = {{"program", program.name}};
  for (const auto& graph : program.graphs) {
    nlohmann::ordered_json one = {{"name", graph->name}, {"ops", nlohmann::ordered_json::array()}};
    std::map<Value, int> ids;
    for (const auto& op : graph->ops) one["ops"].push_back(op_json(*op, ids));
    one["outputs"] = nlohmann::ordered_json::object();
    for (const ir::Output& o : graph->outputs) one["outputs"][o.name] = ids.at(o.value);
    json["graphs"].push_back(one);
  }
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

/// The output format: the value of --format, else the format for the extension of -o, else "text".
/// Throws UserError for an unknown format or extension.
std::string format_of(const ShowFlags& flags) {
  if (!flags.format.empty()) {
    const std::vector<std::string> known = {"text", "json", "dot", "svg"};
    if (std::ranges::find(known, flags.format) != known.end()) return flags.format;
    throw UserError("--format " + flags.format + ": must be text, json, dot or svg" +
                    did_you_mean(flags.format, known));
  }
  const std::map<std::string, std::string> formats = {
      {"", "text"},      {".", "text"},   {".fir", "text"}, {".txt", "text"},
      {".json", "json"}, {".dot", "dot"}, {".gv", "dot"},   {".svg", "svg"}};
  const auto found =
      formats.find(ir::lowercase(std::filesystem::path(flags.output).extension().string()));
  if (found != formats.end()) return found->second;
  throw UserError(
      "-o " + flags.output +
      ": the ending must be .svg, .dot, .json, .txt or .fir, or --format must say the format");
}

Diagram diagram_with_saved(const Program& program) {
  return diagram_of(program, training_memory(program).saved_ops);
}

int run(const ShowFlags& flags) {
  const std::string format = format_of(flags);
  Program program = open_program(flags.program);
  const bool draws = format == "dot" || format == "svg";
  if (draws || flags.length) apply_length_flag(program, flags.length);
  std::string text;
  if (format == "text") text = program.text();
  if (format == "json") text = to_json(program.ir());
  if (format == "dot") text = to_dot(diagram_with_saved(program), program.ir().name);
  if (format == "svg") text = to_svg(diagram_with_saved(program));
  if (flags.output.empty()) {
    fmt::print("{}", text);
  } else {
    write_file_atomically(flags.output, text);
  }
  return 0;
}

}  // namespace

void add_show(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("show", "Print or draw a program");
  const auto flags = std::make_shared<ShowFlags>();
  add_program_argument(*command, flags->program);
  begin_group(*command, kFilesGroup);
  command
      ->add_option("--format", flags->format,
                   "output format (default: the extension of -o, or text without -o)")
      ->type_name("text|json|dot|svg");
  command->add_option("-o", flags->output, "write to this file (default: stdout)")
      ->type_name("FILE");
  add_length_flag(*command, flags->length);
  command->footer("Examples:\n  fluidrun show mnist_fluid --format svg -o mnist.svg");
  command->callback([&action, flags] { action = [flags] { return run(*flags); }; });
}

}  // namespace fluid
