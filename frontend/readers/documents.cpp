#include "frontend/readers/documents.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "frontend/files/gz.h"
#include "frontend/files/line_reader.h"
#include "frontend/files/temporary_file.h"
#include "ir/error.h"
#include "ir/text.h"

namespace fluid {
namespace {

namespace fs = std::filesystem;

/// Consecutive bytes of a text file.
struct FilePart {
  std::string_view text;
  int64_t first_byte = 0;  ///< byte offset of `text` in the file
  bool is_last = true;
};

/// Returns the last position where `text` can be cut without splitting a pre-token. Returns 0 if
/// there is none. A pre-token (see PreTokens) contains no space after a character that is not white
/// space, and no newline after a letter or digit.
size_t last_cut(std::string_view text) {
  for (size_t i = text.find_last_of(" \n"); i != std::string_view::npos && i > 0;
       i = text.find_last_of(" \n", i - 1)) {
    const char before = text[i - 1];
    const bool is_ascii = before > ' ' && before <= '~';
    if (is_ascii && (text[i] == ' ' || std::isalnum(before) != 0)) return i;
  }
  return 0;
}

/// Calls `callback` for consecutive parts of a file. Each part ends where a pre-token ends.
template <class Callback>
void for_each_part(const ByteSource& file, int64_t part_bytes, Callback callback) {
  std::string text;
  int64_t first = 0, read = 0;
  do {
    const int64_t count = std::min(part_bytes, file.size() - read);
    const size_t carried = text.size();
    text.resize(carried + static_cast<size_t>(count));
    file.read(read, std::as_writable_bytes(std::span(text).subspan(carried)));
    read += count;
    const bool is_last = read == file.size();
    const size_t cut = is_last ? text.size() : last_cut(text);
    if (cut == 0 && !is_last) continue;
    callback(FilePart{std::string_view(text).substr(0, cut), first, is_last});
    text.erase(0, cut);
    first += static_cast<int64_t>(cut);
  } while (read < file.size());
}

/// Returns the string at key `key` of a JSON line. `where`: the file and the line number, for
/// messages.
std::string string_of_line(std::string_view line, const std::string& key,
                           const std::string& where) {
  const nlohmann::json object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) throw UserError(where + ": not a JSON object");
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) {
    throw UserError(where + ": no string at key '" + key + "'");
  }
  return found->get<std::string>();
}

}  // namespace

std::vector<std::string> text_files(const std::string& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path().string());
  }
  if (files.empty()) throw UserError("'" + path + "' holds no file");
  std::ranges::sort(files);
  return files;
}

void for_each_document_part(const std::string& path, const std::string& json_key,
                            const std::function<void(const DocumentPart&)>& callback,
                            SkippedRecords* skipped, int64_t part_bytes) {
  for (const std::string& file : text_files(path)) {
    const std::shared_ptr<const ByteSource> contents = open_gz_or_plain(file, kMaxLoadedBytes);
    if (json_key.empty()) {
      for_each_part(*contents, part_bytes, [&](const FilePart& part) {
        callback({part.text, file, part.first_byte, part.is_last});
      });
      continue;
    }
    LineReader lines(contents, file);
    for (std::string_view line; lines.next(line);) {
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      const std::string where = ir::file_and_line(file, lines.number());
      std::string text;
      try {
        text = string_of_line(line, json_key, where);
      } catch (const UserError& error) {
        if (skipped == nullptr) throw;
        skipped->add(error.what());
        continue;
      }
      callback({text, where});
    }
  }
}

SkippedRecords for_each_document_part(const DataArgs& args,
                                      const std::function<void(const DocumentPart&)>& callback) {
  SkippedRecords skipped;
  for_each_document_part(args.path(), args.get_string("key", ""), callback,
                         args.bad_records() == BadRecords::stop ? nullptr : &skipped);
  return skipped;
}

}  // namespace fluid
