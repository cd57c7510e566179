#include "frontend/readers/column_table.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "ir/atomic_file.h"
#include "ir/error.h"

namespace fluid {

ColumnTable ColumnTable::read(const std::string& path) {
  const std::string text = read_file(path);
  ColumnTable table;
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    for (const auto& [column, moments] : json.at("moments").items()) {
      table.moments[column] = {moments.at("mean").get<double>(), moments.at("std").get<double>()};
    }
    table.classes = json.at("classes").get<std::map<std::string, std::vector<std::string>>>();
  } catch (const nlohmann::json::exception&) {
    throw UserError("'" + path + "' is not a table of columns that the option table wrote");
  }
  for (const auto& [column, moments] : table.moments) {
    if (moments.std > 0 && std::isfinite(moments.mean) && std::isfinite(moments.std)) continue;
    throw UserError("'" + path + "': the std of column '" + column + "' is not positive");
  }
  return table;
}

void ColumnTable::write(const std::string& path) const {
  nlohmann::ordered_json json = {{"moments", nlohmann::ordered_json::object()},
                                 {"classes", classes}};
  for (const auto& [column, value] : moments) {
    json["moments"][column] = {{"mean", value.mean}, {"std", value.std}};
  }
  write_file_atomically(
      path, json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace fluid
