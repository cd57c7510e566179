#include "frontend/files/open_files.h"

#include <algorithm>

namespace fluid {

std::shared_ptr<const FileBytes> OpenFiles::open(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto known =
      std::ranges::find_if(files_, [&](const auto& file) { return file.first == path; });
  if (known != files_.end()) {
    std::rotate(known, known + 1, files_.end());
    return files_.back().second;
  }
  auto file = std::make_shared<const FileBytes>(path);
  if (files_.size() == kMaxOpen) files_.erase(files_.begin());
  files_.emplace_back(path, file);
  return file;
}

}  // namespace fluid
