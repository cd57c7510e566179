#include "ops/program_file.h"

#include <algorithm>

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

std::unique_ptr<ir::Program> structure_of(std::string_view contents, const std::string& file_name,
                                          ir::OpOffsets& offsets) {
  if (ir::is_fluid_file(contents)) return deserialize_program(contents, file_name);
  if (contents.empty()) throw UserError(file_name + ": the file is empty");
  if (contents.find('\0') != std::string_view::npos) {
    throw UserError(file_name + ": neither a .fluid file nor a program's text");
  }
  return ir::parse(contents, file_name, &offsets);
}

/// RAII guard for error messages: gives ops without a source location their line in the program
/// file. The destructor removes these locations, so that printing gives the original text.
class ScopedLineLocations {
 public:
  ScopedLineLocations(ir::Program& program, std::string_view text, const std::string& file_name,
                      const ir::OpOffsets& offsets) {
    for (const auto& graph : program.graphs) {
      for (const auto& op : graph->ops) {
        if (!op->loc.is_known() && offsets.contains(op.get())) placed_.push_back(op.get());
      }
    }
    std::ranges::sort(placed_, {}, [&](const ir::Op* op) { return offsets.at(op); });
    int line = 1;
    size_t at = 0;
    for (ir::Op* op : placed_) {
      const size_t offset = offsets.at(op);
      line += static_cast<int>(std::ranges::count(text.substr(at, offset - at), '\n'));
      at = offset;
      op->loc = {file_name, line};
    }
  }
  ~ScopedLineLocations() {
    for (ir::Op* op : placed_) op->loc = {};
  }
  ScopedLineLocations(const ScopedLineLocations&) = delete;

 private:
  std::vector<ir::Op*> placed_;
};

/// Returns `message` prefixed with `path`. If the message already starts with the base name of the
/// file ("net.fir:3: what"), `path` replaces the base name.
std::string in_file(const std::string& path, const std::string& message) {
  const std::string name = Loc{path}.str();
  return message.starts_with(name + ":") ? path + message.substr(name.size())
                                         : path + ": " + message;
}

}  // namespace

std::string serialize_program(const ir::Program& program) {
  return ir::serialize(program, version_of);
}

std::unique_ptr<ir::Program> deserialize_program(std::string_view bytes,
                                                 const std::string& file_name) {
  return ir::deserialize(bytes, file_name, version_of);
}

void verify_program(const ir::Program& program) { ir::verify(program, verify_op); }

std::unique_ptr<ir::Program> read_program(std::string_view contents, const std::string& file_name) {
  ir::OpOffsets offsets;
  auto program = structure_of(contents, file_name, offsets);
  try {
    const ScopedLineLocations lines(*program, contents, file_name, offsets);
    ir::verify(*program);
    for (const auto& graph : program->graphs) fill_default_attrs(*graph);
    verify_program(*program);
  } catch (const UserError& e) {
    throw UserError(in_file(file_name, ir::escape_control_characters(e.what())));
  }
  return program;
}

std::unique_ptr<ir::Program> load_program(const std::string& path) {
  const std::string file = read_file(path);
  return read_program(ir::is_fluid_file(file) ? ir::strip_checksum(file, path) : file, path);
}

void save_program(const ir::Program& program, const std::string& path) {
  verify_program(program);
  write_file_atomically(path, path.ends_with(".fir")
                                  ? ir::print(program)
                                  : ir::append_checksum(serialize_program(program)));
}

}  // namespace fluid
