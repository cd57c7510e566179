#include "frontend/files/record_file.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>
#include <vector>

#include "frontend/files/line_reader.h"
#include "frontend/files/temporary_file.h"
#include "frontend/tokenizers/unicode.h"
#include "ir/error.h"
#include "ir/text.h"

namespace fluid {
namespace {

constexpr int64_t kBlockBytes = int64_t{4} << 10;
constexpr int64_t kBlocksPerChunk = 32;
constexpr int64_t kMaxIndexBytes = int64_t{16} << 20;
constexpr size_t kMaxUtf8Bytes = 4;  ///< maximum length of a code point in UTF-8

/// The position of a block, an entry of RecordIndex::blocks.
struct BlockStart {
  int64_t offset = 0, line = 0, record = 0;
};
constexpr auto kStartBytes = static_cast<int64_t>(sizeof(BlockStart));

/// Checks whether a text that is given in parts is UTF-8.
class Utf8Check {
 public:
  void add(std::string_view part) {
    char bits = 0;
    for (const char c : part) bits |= c;
    if (!is_valid_ || (rest_.empty() && bits >= 0)) return;  // ASCII needs no decoding
    rest_ += part;
    size_t at = 0;
    char32_t code_point = 0;
    while (at < rest_.size()) {
      if (rest_[at] >= 0) {
        ++at;
      } else if (!next_code_point(rest_, at, code_point)) {
        break;
      }
    }
    is_valid_ = rest_.size() - at < kMaxUtf8Bytes;
    rest_.erase(0, at);
  }
  bool is_utf8() const { return is_valid_ && rest_.empty(); }

 private:
  bool is_valid_ = true;
  std::string rest_;  // an incomplete code point, which may continue in the next part
};

std::string utf8_of_latin1(std::string_view text) {
  std::string utf8;
  utf8.reserve(text.size() + text.size() / 8);
  for (const char c : text) {
    if (c >= 0) {
      utf8 += c;
    } else {
      utf8 += utf8_of(static_cast<unsigned char>(c));
    }
  }
  return utf8;
}

/// Scans a text part by part.
class RecordScan {
 public:
  RecordScan(const std::shared_ptr<const ByteSource>& text, const RecordSyntax& syntax,
             const std::string& source_name)
      : text_(*text), parts_(text), syntax_(syntax), source_name_(source_name) {}

  RecordIndex run() {
    read_more();
    at_ = syntax_.begin(part_, source_name_);
    while (!is_end_ || at_ < part_.size()) {
      size_t end = syntax_.end_of_record(part_, at_);
      if (end == std::string::npos && !is_end_) {
        read_more();
        continue;
      }
      end = std::min(end, part_.size());
      add(std::string_view(part_).substr(at_, end - at_));
      at_ = end;
    }
    append_start();
    text_.check_unchanged();
    index_.is_latin1 = !utf8_.is_utf8();
    index_.blocks = blocks_.release();
    return std::move(index_);
  }

 private:
  /// Drops the scanned part of the text and appends the next one to the rest.
  void read_more() {
    if (static_cast<int64_t>(part_.size() - at_) > kMaxRecordBytes) {
      throw UserError(ir::file_and_line(source_name_, line_) + ": the record has more than " +
                      std::to_string(kMaxRecordBytes >> 20) + " MiB" + syntax_.hint);
    }
    part_.erase(0, at_);
    offset_ += static_cast<int64_t>(std::exchange(at_, 0));
    const size_t known = part_.size();
    is_end_ = !parts_.read_more(part_);
    utf8_.add(std::string_view(part_).substr(known));
  }

  void add(std::string_view record) {
    const int64_t end = offset_ + static_cast<int64_t>(at_ + record.size());
    if (block_offset_ < 0 || end - block_offset_ > kBlockBytes) append_start();
    if (!syntax_.is_empty(record)) ++index_.records;
    line_ += std::ranges::count(record, '\n');
  }

  /// Appends the present position to the index.
  void append_start() {
    block_offset_ = offset_ + static_cast<int64_t>(at_);
    const BlockStart start = {.offset = block_offset_, .line = line_, .record = index_.records};
    blocks_.append(std::as_bytes(std::span(&start, 1)));
  }

  const ByteSource& text_;
  SequentialBytes parts_;
  std::string part_;           // the part of the text that is buffered
  int64_t offset_ = 0;         // offset of part_ in the text
  size_t at_ = 0;              // start of the next record in part_
  int64_t line_ = 1;           // line of the next record
  int64_t block_offset_ = -1;  // offset of the last block in the text; -1: there is none yet
  bool is_end_ = false;
  const RecordSyntax& syntax_;
  const std::string& source_name_;
  Utf8Check utf8_;
  SpillBuffer blocks_{kMaxIndexBytes};
  RecordIndex index_;
};

}  // namespace

RecordIndex index_records(const std::shared_ptr<const ByteSource>& text, const RecordSyntax& syntax,
                          const std::string& source_name) {
  return RecordScan(text, syntax, source_name).run();
}

struct RecordFile::LoadedBlock {
  struct Range {
    size_t begin = 0, end = 0;
  };
  uint64_t file = 0;  ///< RecordFile::id_ of the file of the block; 0: none
  int64_t first_record = 0;
  int64_t line = 0;  ///< line where `text` starts
  std::string text;
  std::vector<Range> records;  ///< ranges of `text`
};

RecordFile::RecordFile(std::shared_ptr<const ByteSource> text, RecordIndex index,
                       const RecordSyntax& syntax, std::string source_name)
    : text_(std::move(text)),
      index_(std::move(index)),
      syntax_(syntax),
      source_name_(std::move(source_name)) {
  static std::atomic<uint64_t> last_id{0};
  id_ = ++last_id;
}

int64_t RecordFile::resident_bytes() const {
  return text_->resident_bytes() + index_.blocks->resident_bytes();
}

int64_t RecordFile::blocks() const { return index_.blocks->size() / kStartBytes - 1; }

int64_t RecordFile::records_per_chunk() const {
  return std::max<int64_t>(1, records() * kBlocksPerChunk / std::max<int64_t>(1, blocks()));
}

TextRecord RecordFile::read(int64_t record) const {
  thread_local LoadedBlock loaded;
  const auto is_loaded = [&] {
    const int64_t index = record - loaded.first_record;
    return loaded.file == id_ && index >= 0 && index < std::ssize(loaded.records);
  };
  if (!is_loaded()) load(block_of(record), loaded);
  const auto [begin, end] = loaded.records[static_cast<size_t>(record - loaded.first_record)];
  const std::string_view text = loaded.text;
  return {.text = text.substr(begin, end - begin),
          .before = text.substr(0, begin),
          .first_line = loaded.line};
}

int64_t RecordFile::block_of(int64_t record) const {
  int64_t block = 0;
  for (int64_t end = blocks(); end - block > 1;) {
    const int64_t middle = (block + end) / 2;
    BlockStart start;
    index_.blocks->read(middle * kStartBytes, std::as_writable_bytes(std::span(&start, 1)));
    // A block of empty lines starts at the record of the next block: the last such block counts.
    (start.record <= record ? block : end) = middle;
  }
  return block;
}

std::string RecordFile::location(int64_t record) const {
  return ir::file_and_line(source_name_, read(record).line());
}

void RecordFile::load(int64_t block, LoadedBlock& loaded) const {
  loaded.file = 0;  // stays 0 if an error is thrown
  std::array<BlockStart, 2> starts;
  index_.blocks->read(block * kStartBytes, std::as_writable_bytes(std::span(starts)));
  loaded.text.resize(static_cast<size_t>(starts[1].offset - starts[0].offset));
  text_->read(starts[0].offset, std::as_writable_bytes(std::span(loaded.text)));
  text_->check_unchanged();
  if (index_.is_latin1) loaded.text = utf8_of_latin1(loaded.text);
  loaded.line = starts[0].line;
  loaded.records.clear();
  const std::string_view text = loaded.text;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(syntax_.end_of_record(text, at), text.size());
    if (!syntax_.is_empty(text.substr(at, end - at))) loaded.records.push_back({at, end});
    at = end;
  }
  if (std::ssize(loaded.records) != starts[1].record - starts[0].record) {
    throw UserError("cannot read '" + source_name_ + "': it was changed while it was read");
  }
  loaded.first_record = starts[0].record;
  loaded.file = id_;
}

}  // namespace fluid
