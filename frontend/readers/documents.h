#pragma once

#include <string>
#include <vector>

namespace fluid {

/// A text, and its name for messages.
struct Document {
  std::string name, text;
};

/// Returns the documents of a path: the strings of the key `json_key` of a file of JSON lines, the
/// files of a directory in sorted order, or one file. Files may be gzipped. `json_key` empty: no
/// JSON. Throws UserError, which names the file and the line.
std::vector<Document> read_documents(const std::string& path, const std::string& json_key);

}  // namespace fluid
