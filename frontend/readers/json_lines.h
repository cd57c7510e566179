#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/files/text_record.h"
#include "frontend/readers/missing_rule.h"
#include "frontend/readers/plain_json.h"

namespace fluid {

/// A key of the lines of a file whose values are a column. The first line that has a value of the
/// key determines shape and type.
struct KeyColumn {
  std::string key;
  std::vector<int64_t> shape = {};  ///< shape of one sample
  bool holds_text = false;
  bool is_integer = true;  ///< whether the values of all lines are integers
  MissingRule missing = {};
  std::string missing_option = {};  ///< MissingRules::option()

  int64_t numel() const;
};

/// A line of a file of JSON objects.
class JsonLine {
 public:
  /// `record` and `path`, the file for messages, must outlive the line. Throws UserError unless
  /// `record` is a JSON object.
  JsonLine(const TextRecord& record, const std::string& path);

  JsonLine(const JsonLine&) = delete;
  ~JsonLine();

  std::vector<std::string> keys() const;  ///< in the order of the line
  /// Returns the value at `key`; nullopt if there is none, or null. Throws UserError, which names
  /// line and key, for a value that cannot be a column.
  std::optional<LineValue> value_at(const std::string& key) const;
  /// Returns the value of `column`, in which NaN stands for numbers that its rule fills in. Returns
  /// nullopt if its rule drops the line. Throws UserError like value_at(), and for a value that is
  /// missing, or that has another type or shape.
  std::optional<LineValue> value_of(const KeyColumn& column) const;
  std::string location() const;  ///< "<path>:<line>"
  [[noreturn]] void fail(const std::string& message) const;

 private:
  [[noreturn]] void fail_missing(const KeyColumn& column) const;

  struct Object;

  const TextRecord& record_;
  const std::string& path_;
  std::optional<std::vector<PlainJsonEntry>> entries_;  ///< nullopt: the object is not plain
  std::unique_ptr<const Object> object_;                ///< null: the object is plain
};

}  // namespace fluid
