#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace fluid {

/// Reads the entries of one JSON object of a target description. Numbers must be positive. Throws
/// UserError with the file's name when an entry is missing or has the wrong type.
class DescriptionReader {
 public:
  /// Parses `text`, the content of `file`, and selects the object at JSON Pointer `pointer` (RFC
  /// 6901). `object_name`: name of the object in error messages, such as "GPU". `missing_message`:
  /// error message if there is no object at `pointer`.
  DescriptionReader(const std::string& text, std::string file, std::string object_name,
                    const std::string& pointer = "", const std::string& missing_message = "");
  ~DescriptionReader();
  DescriptionReader(const DescriptionReader&) = delete;

  bool has(const char* name) const;
  void read(const char* name, bool& value);
  void read(const char* name, double& value);
  void read(const char* name, std::string& value);
  void read(const char* name, int& value);
  void read(const char* name, int64_t& value);
  /// An object whose values are pairs of numbers.
  using Pairs = std::map<std::string, std::array<double, 2>>;
  void read(const char* name, Pairs& value);
  /// Throws UserError, because entry `name` has an invalid value. `why`: reason in the message.
  [[noreturn]] void reject(const char* name, const std::string& why) const;
  /// Throws UserError if the object has an entry that was neither read nor listed in `known`.
  void reject_unknown_entries(std::vector<std::string> known) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fluid
