#include "frontend/program.h"
#include "ir/atomic_file.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/serialize.h"
#include "ir/verify.h"
#include "ops/record.h"
#include "ops/table.h"

namespace fluid {
namespace {

int version_of(std::string_view op) {
  const OpDef* def = find_op(op);
  return def == nullptr ? 0 : *def->version;
}

}  // namespace

Program Program::load(const std::string& path) {
  const std::string bytes = read_file(path);
  std::unique_ptr<ir::Program> program =
      ir::is_fluid_file(bytes) ? ir::deserialize(bytes, path, version_of) : ir::parse(bytes, path);
  for (const auto& graph : program->graphs) {
    for (const auto& op : graph->ops) complete_op(*op);
  }
  ir::verify(*program, verify_op);
  return Program(std::move(program));
}

void Program::save(const std::string& path) const {
  ir::verify(*program_, verify_op);
  const std::string bytes =
      path.ends_with(".fir") ? ir::print(*program_) : ir::serialize(*program_, version_of);
  write_file_atomically(path, std::string_view(bytes));
}

}  // namespace fluid
