#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/readers/dataset.h"
#include "frontend/readers/kind.h"

namespace fluid {

/// A part of a document. The parts of a document are consecutive. A part starts where a pre-token
/// of a byte-level BPE starts.
struct DocumentPart {
  std::string_view text;
  std::string name;        ///< name of the document, for messages
  int64_t first_byte = 0;  ///< byte offset of `text` in the document
  bool is_last = true;     ///< whether the document ends with this part
};

/// Returns the files of a path: those of a directory in sorted order, or the path itself. Throws
/// UserError for a directory without files.
std::vector<std::string> text_files(const std::string& path);

/// Calls `callback` for each part of each document of a path, in order. If `json_key` is empty,
/// each file of text_files() is a document. Otherwise, the files contain JSON Lines, and the string
/// with the key `json_key` in each line is a document. Parts have about `part_bytes` bytes. Reads
/// one part at a time. A line that is not a JSON object with this string is added to `skipped`; if
/// that is null, throws UserError, which names the file and the line.
void for_each_document_part(const std::string& path, const std::string& json_key,
                            const std::function<void(const DocumentPart&)>& callback,
                            SkippedRecords* skipped = nullptr,
                            int64_t part_bytes = int64_t{4} << 20);

/// Calls `callback` for each part of each document of `args`, whose option key is the JSON key.
/// Returns the bad lines, which it skipped. With BadRecords::stop, throws UserError for a bad line.
SkippedRecords for_each_document_part(const DataArgs& args,
                                      const std::function<void(const DocumentPart&)>& callback);

}  // namespace fluid
