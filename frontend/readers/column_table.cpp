#include "frontend/readers/column_table.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "frontend/files/byte_source.h"
#include "frontend/files/safetensors.h"
#include "ir/atomic_file.h"
#include "ir/error.h"

namespace fluid {
namespace {

using Json = nlohmann::ordered_json;
using Names = std::map<std::string, std::vector<std::string>>;
using Texts = std::map<std::string, std::string>;

constexpr int kVersion = 1;

Json json_of(const ColumnTable& table) {
  Json json = {{"version", kVersion},      {"kind", table.kind},       {"moments", Json::object()},
               {"classes", table.classes}, {"columns", table.columns}, {"options", table.options},
               {"feeds", table.feeds}};
  for (const auto& [column, moments] : table.moments) {
    json["moments"][column] = {{"mean", moments.mean}, {"std", moments.std}};
  }
  return json;
}

std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

/// Returns whether the file at `path` looks like a .safetensors file: an 8-byte length, then a JSON
/// object.
bool is_safetensors(const std::string& path) {
  const FileBytes file(path);
  if (file.size() < 9) return false;
  std::string start(9, '\0');
  file.read(0, std::as_writable_bytes(std::span(start)));
  return start[0] != '{' && start[8] == '{';
}

}  // namespace

std::vector<std::string> ColumnTable::classes_of_feed(const std::string& feed) const {
  const auto column = feeds.find(feed);
  if (column == feeds.end()) return {};
  const auto found = classes.find(column->second);
  return found == classes.end() ? std::vector<std::string>() : found->second;
}

std::string ColumnTable::to_json() const { return dump(json_of(*this), -1); }

ColumnTable ColumnTable::from_json(const std::string& text, const std::string& source) {
  ColumnTable table;
  int version = 0;
  try {
    const Json json = Json::parse(text);
    version = json.value("version", 0);
    for (const auto& [column, moments] : json.at("moments").items()) {
      table.moments[column] = {moments.at("mean").get<double>(), moments.at("std").get<double>()};
    }
    table.classes = json.at("classes").get<Names>();
    table.kind = json.value("kind", std::string());
    table.columns = json.value("columns", Names());
    table.options = json.value("options", Texts());
    table.feeds = json.value("feeds", Texts());
  } catch (const nlohmann::json::exception&) {
    if (version <= kVersion) {
      throw UserError("'" + source + "' is not a table of columns that Fluid wrote");
    }
  }
  if (version > kVersion) {
    throw UserError("'" + source + "' holds a table of columns of version " +
                    std::to_string(version) + ", which a newer Fluid wrote");
  }
  for (const auto& [column, moments] : table.moments) {
    if (moments.std > 0 && std::isfinite(moments.mean) && std::isfinite(moments.std)) continue;
    throw UserError("'" + source + "': the std of column '" + column + "' is not positive");
  }
  return table;
}

ColumnTable ColumnTable::read(const std::string& path) {
  if (!is_safetensors(path)) return from_json(read_file(path), path);
  if (const ColumnTablePtr table = read_column_table_metadata(path)) return *table;
  throw UserError("'" + path + "' holds no table of columns: its training data had none to keep");
}

void ColumnTable::write(const std::string& path) const {
  write_file_atomically(path, dump(json_of(*this), 1) + "\n");
}

ColumnTablePtr read_column_table_metadata(const std::string& path) {
  const TensorHeader header = parse_safetensors_header(FileBytes(path), path);
  const auto entry = header.metadata.find(kColumnTableMetadata);
  if (entry == header.metadata.end()) return nullptr;
  return std::make_shared<const ColumnTable>(ColumnTable::from_json(entry->second, path));
}

}  // namespace fluid
