#include "frontend/readers/record_stream.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "ir/error.h"

namespace fluid {
namespace {

/// A column of the samples so far, in a temporary file.
class SpooledColumn {
 public:
  explicit SpooledColumn(Column type) : type_(std::move(type)) {
    path_ = (std::filesystem::temp_directory_path() / "fluid-data-XXXXXX").string();
    fd_ = mkostemp(path_.data(), O_CLOEXEC);
    if (fd_ < 0) fail();
  }
  ~SpooledColumn() {
    close(fd_);
    unlink(path_.c_str());
  }
  SpooledColumn(const SpooledColumn&) = delete;

  const Column& type() const { return type_; }

  void append(const Tensor& samples, int64_t count) {
    const auto* bytes = static_cast<const char*>(samples.data());
    for (int64_t left = count * type_.bytes(); left > 0;) {
      const ssize_t written = write(fd_, bytes, static_cast<size_t>(left));
      if (written < 0 && errno != EINTR) fail();
      bytes += std::max<ssize_t>(written, 0);
      left -= std::max<ssize_t>(written, 0);
    }
    samples_ += count;
  }

  /// Returns the column. Its file stays open after this object unlinks it.
  ArrayColumn column() const {
    return {.type = type_,
            .samples = samples_,
            .file = std::make_shared<FileBytes>(path_),
            .file_name = path_};
  }

 private:
  [[noreturn]] void fail() const {
    throw UserError("cannot write '" + path_ + "': " + std::strerror(errno));
  }

  Column type_;
  std::string path_;
  int fd_ = -1;
  int64_t samples_ = 0;
};

Column type_of(const std::string& name, const Tensor& samples) {
  return {name, samples.dtype(), {samples.shape().begin() + 1, samples.shape().end()}};
}

}  // namespace

SampleSourcePtr spool(RecordStream& stream, int64_t limit, const DataArgs& args,
                      const std::string& name) {
  std::vector<std::unique_ptr<SpooledColumn>> columns;
  for (int64_t samples = 0; samples < limit;) {
    const Dataset next = stream.next();
    if (next.columns.empty()) break;
    const int64_t count = std::min(next.samples(), limit - samples);
    for (size_t c = 0; c < next.columns.size(); ++c) {
      const auto& [column, values] = next.columns[c];
      const Column type = type_of(column, values);
      if (columns.size() == c) columns.push_back(std::make_unique<SpooledColumn>(type));
      if (columns[c]->type().str() != type.str()) {
        throw UserError("data '" + name + "': after " + std::to_string(samples) +
                        " samples, column " + columns[c]->type().str() + " becomes " + type.str());
      }
      columns[c]->append(values, count);
    }
    samples += count;
  }
  if (columns.empty()) throw UserError("data '" + name + "' holds no sample");
  std::vector<ArrayColumn> arrays;
  for (const auto& column : columns) arrays.push_back(column->column());
  return make_array_source(std::move(arrays), args, name);
}

}  // namespace fluid
