#include "frontend/readers/documents.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "frontend/files/gz.h"
#include "ir/error.h"

namespace fluid {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> files_of(const std::string& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path().string());
  }
  if (files.empty()) throw UserError("'" + path + "' holds no file");
  std::ranges::sort(files);
  return files;
}

void append_lines(const std::string& path, const std::string& key, std::vector<Document>& all) {
  const std::string text = read_maybe_gz(path);
  std::string_view left = text;
  for (int64_t number = 1; !left.empty(); ++number) {
    const std::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(left.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string where = path + ":" + std::to_string(number);
    const nlohmann::json object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) throw UserError(where + ": not a JSON object");
    const auto found = object.find(key);
    if (found == object.end() || !found->is_string()) {
      throw UserError(where + ": no string at key '" + key + "'");
    }
    all.push_back({where, found->get<std::string>()});
  }
}

}  // namespace

std::vector<Document> read_documents(const std::string& path, const std::string& json_key) {
  std::vector<Document> documents;
  for (const std::string& file : files_of(path)) {
    if (json_key.empty()) {
      documents.push_back({file, read_maybe_gz(file)});
    } else {
      append_lines(file, json_key, documents);
    }
  }
  return documents;
}

}  // namespace fluid
