// The kind of data "pipe": a process that writes batches to its standard output.

#include <cstring>
#include <limits>

#include "frontend/files/npy.h"
#include "frontend/files/process_pipe.h"
#include "frontend/readers/kind.h"
#include "frontend/readers/record_stream.h"
#include "ir/error.h"
#include "ir/text.h"

namespace fluid {
namespace {

constexpr int64_t kTimeoutSeconds = 60;
constexpr int64_t kMaxTimeoutSeconds = 86'400;
constexpr size_t kMagicBytes = 10;  // of a .npy file of version 1, with the length of its header
constexpr int64_t kMaxBatchBytes = int64_t{1} << 30;

/// The batches of a process: for each batch an array in .npy format for each column.
class PipeStream : public RecordStream {
 public:
  PipeStream(const DataArgs& args, std::vector<std::string> columns, int timeout_seconds)
      : columns_(std::move(columns)), pipe_(args.path(), timeout_seconds), command_(args.path()) {}

  Dataset next() override {
    ++batch_;
    Dataset batch;
    for (const std::string& column : columns_) {
      std::string bytes = read_array(column, batch.columns.empty());
      if (bytes.empty()) return {};
      batch.columns.emplace_back(column, parse_npy(bytes, where(column)));
    }
    for (const auto& [column, values] : batch.columns) {
      if (values.shape().empty()) {
        throw UserError(where(column) + ": a column needs a first dimension that counts samples");
      }
      if (values.shape()[0] == batch.columns[0].second.shape()[0]) continue;
      throw UserError(where(column) + ": " + std::to_string(values.shape()[0]) +
                      " samples, but the first column has " +
                      std::to_string(batch.columns[0].second.shape()[0]));
    }
    return batch;
  }

 private:
  std::string where(const std::string& column) const {
    return "command '" + command_ + "', batch " + std::to_string(batch_) + ", column '" + column +
           "'";
  }

  /// Returns the bytes of the next array; none at the end of the output, if `may_end`.
  std::string read_array(const std::string& column, bool may_end) {
    std::string bytes;
    const size_t got = append(bytes, kMagicBytes);
    if (got == 0 && may_end) {
      pipe_.wait();
      return "";
    }
    const bool is_npy = bytes.starts_with("\x93NUMPY");
    if (got > 0 && !is_npy) throw UserError(where(column) + ": not an array in .npy format");
    require(got == kMagicBytes, column);
    if (bytes[6] != 1) throw UserError(where(column) + ": not version 1 of the .npy format");
    const size_t header = static_cast<unsigned char>(bytes[8]) |
                          static_cast<size_t>(static_cast<unsigned char>(bytes[9])) << 8;
    require(append(bytes, header) == header, column);
    const int64_t size = parse_npy_header(bytes, where(column)).data_bytes();
    if (size > kMaxBatchBytes) {
      throw UserError(where(column) + ": the array takes more than 1 GiB; write smaller batches");
    }
    require(append(bytes, static_cast<size_t>(size)) == static_cast<size_t>(size), column);
    return bytes;
  }

  size_t append(std::string& bytes, size_t count) {
    const size_t before = bytes.size();
    bytes.resize(before + count);
    const size_t got = pipe_.read(std::as_writable_bytes(std::span(bytes)).subspan(before));
    bytes.resize(before + got);
    return got;
  }

  /// Throws if the output ended before the array did; if the command failed, its exit is the cause.
  void require(bool complete, const std::string& column) {
    if (complete) return;
    pipe_.wait();
    throw UserError(where(column) + ": the output ends before the array does");
  }

  std::vector<std::string> columns_;
  ProcessPipe pipe_;
  std::string command_;
  int64_t batch_ = 0;
};

SampleSourcePtr open_pipe(const DataArgs& args) {
  const std::string* columns = args.find("columns");
  if (columns == nullptr) args.fail("name the columns: columns=x,y");
  const int64_t timeout = args.get_integer("timeout", kTimeoutSeconds, 1);
  if (timeout > kMaxTimeoutSeconds) {
    args.fail("option timeout=" + std::to_string(timeout) + " must be at most " +
              std::to_string(kMaxTimeoutSeconds) + " s");
  }
  const int64_t limit = args.get_integer("records", std::numeric_limits<int64_t>::max(), 1);
  PipeStream stream(args, ir::split_at_commas(*columns), static_cast<int>(timeout));
  return spool(stream, limit, args, "pipe:" + args.path());
}

}  // namespace

DataKind pipe_kind() {
  return {.name = "pipe",
          .usage = "pipe:COMMAND?columns=x,y",
          .doc =
              "the output of a shell command: for each batch an array in .npy format for each of "
              "columns=x,y, kept in temporary files; records=N ends the command after N samples; "
              "timeout=60 seconds for each read; memory=0|1 as for npy",
          .splits_rows = true,
          .options = {"columns", "memory", "records", "timeout"},
          .open = open_pipe};
}

}  // namespace fluid
