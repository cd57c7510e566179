#pragma once

#include <string>
#include <string_view>

namespace fluid {

/// A read-only memory mapping of a whole file. The constructor throws UserError naming `path` if
/// the file cannot be mapped or is not a regular file.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;

  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace fluid
