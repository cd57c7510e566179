#include "frontend/readers/characters.h"

#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "frontend/files/temporary_file.h"
#include "frontend/readers/documents.h"
#include "frontend/readers/excerpt.h"
#include "frontend/tokenizers/unicode.h"
#include "ir/error.h"

namespace fluid {
namespace {

/// Calls `callback`(code point, its bytes, byte offset in the document) for each character.
template <class Callback>
void for_each_character(const DocumentPart& part, Callback callback) {
  char32_t code_point = 0;
  for (size_t at = 0; at < part.text.size();) {
    const size_t begin = at;
    const int64_t byte = part.first_byte + static_cast<int64_t>(begin);
    if (!next_code_point(part.text, at, code_point)) {
      throw UserError(part.name + ": byte " + std::to_string(byte) + " is not UTF-8");
    }
    callback(code_point, part.text.substr(begin, at - begin), byte);
  }
}

/// Returns the only character of `text`; nullopt if it has none or several.
std::optional<char32_t> single_character(std::string_view text) {
  char32_t code_point = 0;
  size_t at = 0;
  if (text.empty() || !next_code_point(text, at, code_point)) return std::nullopt;
  return at == text.size() ? std::optional(code_point) : std::nullopt;
}

/// Names a code point as Unicode does, by four digits or more: "U+007E", "U+1F600".
std::string name_of(char32_t code_point) {
  std::array<char, 16> name = {};
  std::snprintf(name.data(), name.size(), "U+%04X", static_cast<unsigned>(code_point));
  return name.data();
}

/// Returns the character of option end, which is appended to each document.
std::string end_character(const DataArgs& args) {
  const std::string end = args.get_string("end", std::string(1, '\0'));
  if (!single_character(end)) args.fail("option end=" + end + " must be one character");
  return end;
}

class CharacterReader {
 public:
  CharacterReader(const ColumnTableContext& context, bool documents)
      : context_(context),
        args_(context.args()),
        table_(context.initial_table({"characters", "unknown"})) {
    if (documents) end_ = end_character(args_);
    if (context_.given() == nullptr) table_.classes[kCharacterColumn] = learned_vocabulary();
    const auto vocabulary = table_.classes.find(kCharacterColumn);
    if (vocabulary == table_.classes.end()) context_.fail_without_column(kCharacterColumn);
    for (const std::string& character : vocabulary->second) {
      const std::optional<char32_t> code_point = single_character(character);
      if (code_point) ids_.emplace(*code_point, static_cast<int32_t>(ids_.size()));
    }
    for (const char* feed : {"text", "target"}) table_.feeds[feed] = kCharacterColumn;
  }

  CharacterText read() {
    const bool has_unknown = args_.get_flag("unknown", false);
    SpillBuffer all(kMaxLoadedBytes);
    std::vector<int32_t> ids;  // ids of the characters in the current part
    SkippedRecords skipped = for_each_part([&](const DocumentPart& part) {
      for_each_character(part, [&](char32_t code_point, std::string_view text, int64_t byte) {
        const auto found = ids_.find(code_point);
        if (found == ids_.end() && !has_unknown) fail_unknown(part, code_point, text, byte);
        ids.push_back(found == ids_.end() ? unknown_id() : found->second);
      });
      all.append(std::as_bytes(std::span(ids)));
      ids.clear();
    });
    const auto table = std::make_shared<const ColumnTable>(std::move(table_));
    context_.report_table(table);
    return {Symbols<int32_t>(all.release()), table, std::move(skipped)};
  }

 private:
  /// Calls `callback` for each part of the text. Passes the end character after each document as a
  /// separate part. Returns the bad lines, which it skipped.
  template <class Callback>
  SkippedRecords for_each_part(Callback callback) const {
    return for_each_document_part(args_, [&](const DocumentPart& part) {
      callback(part);
      if (end_.empty() || !part.is_last) return;
      callback({.text = end_, .name = part.name, .first_byte = part.first_byte});
    });
  }

  std::vector<std::string> learned_vocabulary() const {
    std::map<char32_t, std::string> characters;
    for_each_part([&](const DocumentPart& part) {
      for_each_character(part, [&](char32_t code_point, std::string_view text, int64_t) {
        if (!characters.contains(code_point)) characters.emplace(code_point, text);
      });
    });
    std::vector<std::string> vocabulary;
    for (auto& [code_point, text] : characters) vocabulary.push_back(std::move(text));
    return vocabulary;
  }

  int32_t unknown_id() const { return static_cast<int32_t>(ids_.size()); }

  [[noreturn]] void fail_unknown(const DocumentPart& part, char32_t code_point,
                                 std::string_view text, int64_t byte) const {
    throw UserError(part.name + ": byte " + std::to_string(byte) + ": the character '" +
                    excerpt(text) + "' (" + name_of(code_point) +
                    ") is not in the training text; unknown=1 gives it the id " +
                    std::to_string(unknown_id()));
  }

  const ColumnTableContext& context_;
  const DataArgs& args_;
  std::string end_;  ///< character to append to each document; empty: append none
  ColumnTable table_;
  std::unordered_map<char32_t, int32_t> ids_;
};

}  // namespace

CharacterText read_characters(const ColumnTableContext& context, bool documents) {
  return CharacterReader(context, documents).read();
}

}  // namespace fluid
