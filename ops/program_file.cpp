#include "ops/program_file.h"

#include "ir/atomic_file.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/serialize.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/record.h"
#include "ops/table.h"

namespace fluid {
namespace {

int version_of(std::string_view op) {
  const OpDef* def = find_op(op);
  return def == nullptr ? 0 : *def->version;
}

std::unique_ptr<ir::Program> structure_of(std::string_view contents, const std::string& file_name) {
  if (ir::is_fluid_file(contents)) return ir::deserialize(contents, file_name, version_of);
  if (contents.empty()) throw UserError(file_name + ": the file is empty");
  if (contents.find('\0') != std::string_view::npos) {
    throw UserError(file_name + ": neither a .fluid file nor a program's text");
  }
  return ir::parse(contents, file_name);
}

}  // namespace

void verify_program(const ir::Program& program) { ir::verify(program, verify_op); }

std::unique_ptr<ir::Program> read_program(std::string_view contents, const std::string& file_name) {
  auto program = structure_of(contents, file_name);
  try {
    ir::verify(*program);
    for (const auto& graph : program->graphs) {
      for (const auto& op : graph->ops) complete_op(*op);
    }
    verify_program(*program);
  } catch (const UserError& e) {
    throw UserError(file_name + ": " + ir::one_line(e.what()));
  }
  return program;
}

std::unique_ptr<ir::Program> load_program(const std::string& path) {
  const std::string file = read_file(path);
  return read_program(ir::is_fluid_file(file) ? ir::unsealed(file, path) : file, path);
}

void save_program(const ir::Program& program, const std::string& path) {
  verify_program(program);
  write_file_atomically(path, path.ends_with(".fir")
                                  ? ir::print(program)
                                  : ir::sealed(ir::serialize(program, version_of)));
}

}  // namespace fluid
