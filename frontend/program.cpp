#include "frontend/program.h"

#include "ir/print.h"
#include "ops/program_file.h"
#include "ops/record.h"

namespace fluid {

Program::Program(std::string name)
    : program_(register_program(std::make_unique<ir::Program>(std::move(name)))) {}
Program::Program(std::unique_ptr<ir::Program> recorded)
    : program_(register_program(std::move(recorded))) {}

Value Program::data(const std::string& name, const Shape& shape, DType dtype, const Loc& loc) {
  return data(name, shape, dtype, DataOptions(), loc);
}

Value Program::data(const std::string& name, const Shape& shape, DType dtype,
                    const DataOptions& options, const Loc& loc) {
  Attrs attrs;
  if (options.scale != 1) attrs.set("scale", options.scale);
  if (!options.mean.empty()) attrs.set("mean", options.mean);
  if (!options.std.empty()) attrs.set("std", options.std);
  return record_source(program_->main(), "data", name, Type{dtype, shape, {}}, attrs, loc);
}

Value Program::parameter(const std::string& name, const Shape& shape, const Init& init,
                         const ParameterOptions& options, const Loc& loc) {
  return record_parameter(program_->main(), name, shape, init, options, loc);
}

void Program::output(const std::string& name, Value value, const Loc& loc) {
  ir::Graph& graph = program_->main();
  if (!value || value.op()->graph() != &graph) {
    throw UserError(loc,
                    "output '" + name + "' is not a value of program '" + program_->name + "'");
  }
  for (const ir::Output& o : graph.outputs) {
    if (o.name == name) throw UserError(loc, "output '" + name + "' exists already");
  }
  graph.outputs.push_back({name, value});
}

Program Program::load(const std::string& path) { return Program(load_program(path)); }

void Program::save(const std::string& path) const { save_program(*program_, path); }

std::string Program::text() const { return ir::print(*program_); }

Scope::Scope(Program& program, const std::string& name)
    : recording_(program.ir().main(),
                 [&] {
                   ir::Graph::Recording recording = program.ir().main().recording;
                   recording.scope = recording.scope.empty() ? name : recording.scope + "." + name;
                   return recording;
                 }()),
      program_guard_(program.ir()) {}

}  // namespace fluid
