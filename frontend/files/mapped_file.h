#pragma once

#include <string>
#include <string_view>

namespace fluid {

/// A whole file seen as read-only memory. Throws UserError naming `path` when it cannot be opened
/// or is no regular file.
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
