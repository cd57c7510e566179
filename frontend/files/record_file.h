#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "frontend/files/byte_source.h"
#include "frontend/files/text_record.h"

namespace fluid {

/// Where the records of a text are. A block is a run of records of at most 4 KiB, or one longer
/// record. The index takes 24 bytes for each block.
struct RecordIndex {
  int64_t records = 0;
  bool is_latin1 = false;  ///< whether the text is not UTF-8, and so is taken for Latin-1
  /// Triples of i64: offset, 1-based line and first record of each block; then of the end of the
  /// text.
  std::shared_ptr<const ByteSource> blocks;
};

/// Scans `text` for its records. Messages name the text `source_name`. Keeps the index in memory,
/// or in a temporary file if it has more than 16 MiB. Throws UserError for a record of more than
/// kMaxRecordBytes, and if the text changes during the scan.
RecordIndex index_records(const std::shared_ptr<const ByteSource>& text, const RecordSyntax& syntax,
                          const std::string& source_name);

/// The records of a text, read by index. Each thread buffers the block that it read last.
class RecordFile {
 public:
  /// `syntax` is that of index_records(), and must outlive the RecordFile.
  RecordFile(std::shared_ptr<const ByteSource> text, RecordIndex index, const RecordSyntax& syntax,
             std::string source_name);

  const std::string& source_name() const { return source_name_; }
  int64_t records() const { return index_.records; }
  /// Mean number of records of some blocks, which a thread reads one after the other.
  int64_t records_per_chunk() const;
  int64_t resident_bytes() const;  ///< size in bytes of the text and the index in memory
  /// Returns a record as UTF-8, valid until the thread reads a record of any RecordFile. Throws
  /// UserError if the text has changed since it was opened.
  TextRecord read(int64_t record) const;
  std::string location(int64_t record) const;  ///< "<source_name>:<line>"

 private:
  struct LoadedBlock;
  int64_t blocks() const;
  int64_t block_of(int64_t record) const;
  void load(int64_t block, LoadedBlock& loaded) const;

  std::shared_ptr<const ByteSource> text_;
  RecordIndex index_;
  const RecordSyntax& syntax_;
  std::string source_name_;
  uint64_t id_;  ///< distinguishes the files whose blocks a thread buffers
};

}  // namespace fluid
