#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fluid {

/// Reads, entry by entry, an object of the JSON by which machines are described. Each entry must be
/// there, and be what describes a machine: a number above 0, a word, true or false. Throws
/// UserError, which names the file.
class DescriptionReader {
 public:
  /// The object at `pointer` (RFC 6901) in `text`, of `file`. `what` the object describes, for
  /// messages; `missing`: the message when it is not there.
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
  /// Refuses entries that were not read, but for those `known`.
  void refuse_others(std::vector<std::string> known) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fluid
