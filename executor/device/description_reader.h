#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fluid {

/// Reads one object of a target description (JSON) entry by entry. Numbers must be above 0. Throws
/// UserError with the file's name when an entry is missing or has the wrong type.
class DescriptionReader {
 public:
  /// Reads the object at `pointer` (RFC 6901) in `text`, the content of `file`. `what`: noun for
  /// the object in messages. `missing`: the message when the object is absent.
  DescriptionReader(const std::string& text, std::string file, std::string what,
                    const std::string& pointer = "", const std::string& missing = "");
  ~DescriptionReader();
  DescriptionReader(const DescriptionReader&) = delete;

  bool has(const char* name) const;
  void read(const char* name, bool& value);
  void read(const char* name, double& value);
  void read(const char* name, std::string& value);
  void read(const char* name, int& value);
  void read(const char* name, int64_t& value);
  /// Throws UserError for an entry that is neither read nor in `known`.
  void reject_unknown_entries(std::vector<std::string> known) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fluid
