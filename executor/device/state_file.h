#pragma once

#include <unistd.h>

#include <cstdint>

namespace fluid {

/// Alignment of ranges that are mapped from files: the largest page size of a supported CPU.
constexpr int64_t kMapAlignment = int64_t{64} << 10;

/// A range of a session's state region, in bytes.
struct StateRange {
  int64_t offset = 0;
  int64_t bytes = 0;
  bool contains(int64_t at) const { return at >= offset && at < offset + bytes; }
};

/// The values of a range of the state region in an open file. Closes the file.
class StateFile {
 public:
  /// `offset`: start of the values in the file, a multiple of kMapAlignment.
  StateFile(int fd, int64_t offset) : fd_(fd), offset_(offset) {}
  ~StateFile() { close(fd_); }
  StateFile(const StateFile&) = delete;
  int fd() const { return fd_; }
  int64_t offset() const { return offset_; }

 private:
  int fd_;
  int64_t offset_;
};

}  // namespace fluid
