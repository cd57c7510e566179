#include "executor/launcher/rank_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "ir/error.h"

namespace fluid {
namespace {

constexpr size_t kChunkBytes = PIPE_BUF;  // a write of PIPE_BUF bytes does not block after POLLOUT
constexpr size_t kTailBytes = 8192;
constexpr int kLastLines = 10;

/// Writes `size` bytes. Returns 0, or the errno of a failed write.
int write_all(int fd, const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t n = write(fd, bytes, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes += n;
    size -= static_cast<size_t>(n);
  }
  return 0;
}

bool is_writable(int terminal) {
  pollfd wanted{terminal, POLLOUT, 0};
  return poll(&wanted, 1, 0) != 0;
}

}  // namespace

RankOutput::RankOutput(std::string log, const std::string& heading, bool on_terminal)
    : log_(std::move(log)) {
  if (on_terminal) {
    streams_[0].terminal = STDOUT_FILENO;
    streams_[1].terminal = STDERR_FILENO;
  }
  if (log_.empty()) return;
  const int how = heading.empty() ? O_TRUNC : O_APPEND;
  log_fd_ = ::open(log_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | how, 0666);
  write_log(heading.data(), heading.size());
}

RankOutput::~RankOutput() {
  for (const int fd : {streams_[0].fd, streams_[1].fd, log_fd_}) {
    if (fd >= 0) close(fd);
  }
}

void RankOutput::set_pipes(int out, int err) {
  streams_[0].fd = out;
  streams_[1].fd = err;
}

void RankOutput::append_pollfds(std::vector<pollfd>& fds) const {
  for (const Stream& stream : streams_) {
    if (stream.fd < 0) continue;
    const bool blocked = stream.blocked && stream.terminal >= 0;
    fds.push_back(blocked ? pollfd{stream.terminal, POLLOUT, 0} : pollfd{stream.fd, POLLIN, 0});
  }
}

void RankOutput::forward(bool exited) {
  for (Stream& stream : streams_) forward(stream, exited);
}

void RankOutput::forward(Stream& stream, bool exited) {
  if (stream.fd < 0) return;
  stream.blocked = stream.terminal >= 0 && !is_writable(stream.terminal);
  if (stream.blocked) return;
  std::array<char, kChunkBytes> bytes;
  const ssize_t n = read(stream.fd, bytes.data(), bytes.size());
  if (n <= 0) {
    // A child process of the rank may outlive the rank and hold the write end of the pipe open.
    if (n == 0 || exited) close(std::exchange(stream.fd, -1));
    return;
  }
  const auto size = static_cast<size_t>(n);
  tail_.append(bytes.data(), size);
  if (tail_.size() > 2 * kTailBytes) tail_.erase(0, tail_.size() - kTailBytes);
  write_log(bytes.data(), size);
  write_terminal(stream, bytes.data(), size);
}

void RankOutput::write_terminal(Stream& stream, const char* bytes, size_t size) {
  if (stream.terminal < 0) return;
  const int error = write_all(stream.terminal, bytes, size);
  if (error == 0) return;
  if (!ignores_terminal_errors_ && terminal_error_.empty()) terminal_error_ = std::strerror(error);
  stream.terminal = -1;
  if (log_.empty()) close(std::exchange(stream.fd, -1));
}

void RankOutput::write_log(const char* bytes, size_t size) {
  if (log_.empty()) return;
  const int error = log_fd_ < 0 ? errno : write_all(log_fd_, bytes, size);
  if (error != 0) throw UserError("cannot write the log '" + log_ + "': " + std::strerror(error));
}

std::string RankOutput::last_lines() const {
  std::string text = tail_;
  if (!text.empty() && text.back() != '\n') text += '\n';
  size_t begin = text.size();
  for (int line = 0; line < kLastLines && begin > 1; ++line) {
    // without a line feed, rfind() returns npos, and npos + 1 is 0
    begin = text.rfind('\n', begin - 2) + 1;
  }
  return text.substr(begin);
}

}  // namespace fluid
