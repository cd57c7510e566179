// The kind of data "pipe": a process that writes batches to its standard output.

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>

#include "frontend/files/npy.h"
#include "frontend/files/process_pipe.h"
#include "frontend/readers/kind.h"
#include "frontend/readers/spool.h"
#include "ir/error.h"
#include "ir/text.h"

namespace fluid {
namespace {

constexpr int64_t kTimeoutSeconds = 60;
constexpr int64_t kMaxTimeoutSeconds = 86'400;
// Size of the prefix of a version 1 .npy file: magic string, version and header length.
constexpr size_t kMagicBytes = 10;
constexpr int64_t kMaxBatchBytes = int64_t{1} << 30;

/// A flag with a file descriptor that is readable while the flag is set.
class EventFlag {
 public:
  EventFlag() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (fd_ < 0) throw DeviceError(std::string("cannot make an eventfd: ") + std::strerror(errno));
  }
  ~EventFlag() { close(fd_); }
  EventFlag(const EventFlag&) = delete;
  void set() { eventfd_write(fd_, 1); }
  void clear() {
    eventfd_t value = 0;
    eventfd_read(fd_, &value);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

/// Samples that a command writes in batches. A batch is one .npy array per column. Each pass runs
/// the command, with FLUID_EPOCH, FLUID_RANK and FLUID_WORLD in its environment.
class PipeStream : public SampleStream {
 public:
  /// Runs the command for pass `first`, and reads the first batch to learn the columns. Throws
  /// UserError if the command writes no sample.
  /// `stop`: see OpenOptions::stop.
  PipeStream(std::string command, std::vector<std::string> columns, int timeout_seconds,
             const StreamPass& first, std::stop_token stop)
      : command_(std::move(command)),
        names_(std::move(columns)),
        timeout_(timeout_seconds),
        stop_(std::move(stop)),
        on_stop_(stop_, [this] { interrupt_.set(); }) {
    start(first);
    if (!read_batch()) throw UserError("data '" + name() + "' holds no sample");
    for (const auto& [column, values] : batch_.columns) {
      columns_.push_back(type_of(column, values));
      batch_bytes_ += values.bytes();
    }
  }

  const std::vector<Column>& columns() const override { return columns_; }
  std::string name() const override { return "pipe:" + command_; }
  int64_t resident_bytes() const override { return batch_bytes_; }

  void open(const StreamPass& pass) override {
    const bool holds_first_batch = pipe_ && batches_ == 1 && batch_.samples() > 0 &&
                                   pass.epoch == pass_.epoch && pass.rank == pass_.rank &&
                                   pass.world == pass_.world;
    interrupt_.clear();
    if (stop_.stop_requested()) interrupt_.set();
    if (holds_first_batch) {
      row_ = 0;
    } else {
      start(pass);
    }
  }

  bool next(std::span<std::byte* const> to) override {
    while (row_ == batch_.samples()) {
      if (!read_batch()) return false;
    }
    for (size_t c = 0; c < to.size(); ++c) {
      const auto bytes = static_cast<size_t>(columns_[c].bytes());
      if (to[c] == nullptr || bytes == 0) continue;
      const auto* from = static_cast<const std::byte*>(batch_.columns[c].second.data());
      std::memcpy(to[c], from + static_cast<size_t>(row_) * bytes, bytes);
    }
    ++row_;
    return true;
  }

  void close() override { pipe_.reset(); }
  void interrupt() override { interrupt_.set(); }

 private:
  static Column type_of(const std::string& name, const Tensor& samples) {
    return {name, samples.dtype(), {samples.shape().begin() + 1, samples.shape().end()}};
  }

  void start(const StreamPass& pass) {
    pipe_.reset();
    pass_ = pass;
    batches_ = samples_ = row_ = 0;
    batch_ = {};
    pipe_ = std::make_unique<ProcessPipe>(
        command_, ProcessPipe::Options{.timeout_seconds = timeout_,
                                       .environment = {{"FLUID_EPOCH", std::to_string(pass.epoch)},
                                                       {"FLUID_RANK", std::to_string(pass.rank)},
                                                       {"FLUID_WORLD", std::to_string(pass.world)}},
                                       .interrupt_fd = interrupt_.fd()});
  }

  std::string progress_text() const { return "after " + std::to_string(samples_) + " samples"; }

  std::string where(const std::string& column) const {
    return "command '" + command_ + "', " + progress_text() + ", batch " +
           std::to_string(batches_) + ", column '" + column + "'";
  }

  /// Returns f(). If f() throws UserError, rethrows it with the number of samples read so far in
  /// its message.
  template <class F>
  auto with_sample_count(F f) const {
    try {
      return f();
    } catch (const UserError& error) {
      throw UserError(std::string(error.what()) + ", " + progress_text());
    }
  }

  /// Reads the next batch. Returns false at the end of the output.
  bool read_batch() {
    samples_ += batch_.samples();
    batch_ = {};
    row_ = 0;
    if (!pipe_) return false;
    ++batches_;
    Dataset batch;
    for (const std::string& column : names_) {
      std::string bytes = read_array(column, batch.columns.empty());
      if (bytes.empty()) {
        pipe_.reset();
        return false;
      }
      batch.columns.emplace_back(column, parse_npy(bytes, where(column)));
      check_column(batch);
    }
    batch_ = std::move(batch);
    return true;
  }

  /// Throws UserError unless the last column of `batch` has as many samples as the first column,
  /// and the type that it had in earlier batches.
  void check_column(const Dataset& batch) const {
    const auto& [column, values] = batch.columns.back();
    if (values.shape().empty()) {
      throw UserError(where(column) + ": a column needs a first dimension that counts samples");
    }
    if (values.shape()[0] != batch.samples()) {
      throw UserError(where(column) + ": " + std::to_string(values.shape()[0]) +
                      " samples, but the first column has " + std::to_string(batch.samples()));
    }
    if (columns_.empty()) return;
    const std::string type = type_of(column, values).str();
    const std::string before = columns_[batch.columns.size() - 1].str();
    if (type != before) throw UserError(where(column) + ": " + before + " becomes " + type);
  }

  /// Returns the bytes of the next array. At the end of the output, returns "" if `may_end`, and
  /// throws UserError otherwise.
  std::string read_array(const std::string& column, bool may_end) {
    std::string bytes;
    const size_t got = append(bytes, kMagicBytes);
    if (got == 0 && may_end) {
      with_sample_count([&] { pipe_->wait(); });
      return "";
    }
    const bool is_npy = bytes.starts_with("\x93NUMPY");
    if (got > 0 && !is_npy) throw UserError(where(column) + ": not an array in .npy format");
    require_complete(got == kMagicBytes, column);
    if (bytes[6] != 1) throw UserError(where(column) + ": not version 1 of the .npy format");
    const size_t header = static_cast<unsigned char>(bytes[8]) |
                          static_cast<size_t>(static_cast<unsigned char>(bytes[9])) << 8;
    require_complete(append(bytes, header) == header, column);
    const int64_t size = parse_npy_header(bytes, where(column)).data_bytes();
    if (size > kMaxBatchBytes) {
      throw UserError(where(column) + ": the array takes more than 1 GiB; write smaller batches");
    }
    require_complete(append(bytes, static_cast<size_t>(size)) == static_cast<size_t>(size), column);
    return bytes;
  }

  size_t append(std::string& bytes, size_t count) {
    const size_t before = bytes.size();
    bytes.resize(before + count);
    const size_t got = with_sample_count(
        [&] { return pipe_->read(std::as_writable_bytes(std::span(bytes)).subspan(before)); });
    bytes.resize(before + got);
    return got;
  }

  /// Throws UserError unless `complete`. The message reports that the command failed, or else that
  /// its output ended within an array.
  void require_complete(bool complete, const std::string& column) {
    if (complete) return;
    with_sample_count([&] { pipe_->wait(); });
    throw UserError(where(column) + ": the output ends before the array does");
  }

  std::string command_;
  std::vector<std::string> names_;
  int timeout_;
  std::vector<Column> columns_;  // empty until the first batch has been read
  int64_t batch_bytes_ = 0;      // size of the first batch in bytes
  EventFlag interrupt_;
  std::stop_token stop_;
  std::stop_callback<std::function<void()>> on_stop_;

  StreamPass pass_;
  std::unique_ptr<ProcessPipe> pipe_;  // null after the end of the output
  int64_t batches_ = 0, samples_ = 0;  // numbers of batches read, and of samples before batch_
  Dataset batch_;                      // the last batch read
  int64_t row_ = 0;                    // index in batch_ of the next sample
};

std::unique_ptr<PipeStream> make_stream(const DataArgs& args) {
  const std::string* columns = args.find("columns");
  if (columns == nullptr) args.fail("name the columns: columns=x,y");
  const int64_t timeout = args.get_integer("timeout", kTimeoutSeconds, 1);
  if (timeout > kMaxTimeoutSeconds) {
    args.fail("option timeout=" + std::to_string(timeout) + " must be at most " +
              std::to_string(kMaxTimeoutSeconds) + " s");
  }
  return std::make_unique<PipeStream>(args.path(), ir::split_at_commas(*columns),
                                      static_cast<int>(timeout), args.first_pass(), args.stop());
}

int64_t records_of(const DataArgs& args) {
  return args.get_integer("records", std::numeric_limits<int64_t>::max(), 1);
}

SampleSourcePtr open_pipe(const DataArgs& args) {
  const int64_t limit = records_of(args);
  return spool(*make_stream(args), args.first_pass(), limit, args);
}

SampleStreamPtr open_pipe_stream(const DataArgs& args) {
  if (args.find("memory") != nullptr) args.fail("option memory is of data without stream");
  const int64_t limit = records_of(args);
  return first_samples(SampleStreamPtr(make_stream(args)), limit);
}

}  // namespace

DataKind pipe_kind() {
  return {.name = "pipe",
          .usage = "pipe:COMMAND?columns=x,y",
          .doc =
              "the output of a shell command: for each batch an array in .npy format for each of "
              "columns=x,y, kept in temporary files, or with `stream` read while it is written and "
              "shuffled by shuffle_buffer=N; "
              "records=N reads N samples; timeout=60 seconds for each read; "
              "memory=0|1 as for npy",
          .splits_rows = true,
          .options = {"columns", "memory", "records", "timeout"},
          .open_source = open_pipe,
          .open_stream = open_pipe_stream};
}

}  // namespace fluid
