#pragma once

#include <string>
#include <vector>

namespace fluid {

/// A text, and its name in messages.
struct Document {
  std::string name, text;
};

/// Returns the documents at a path. If `json_key` is empty, these are the file, or the files of a
/// directory in sorted order. Otherwise, they are the strings of key `json_key` in a JSON Lines
/// file. Files may be gzipped. Throws UserError, which names the file and the line.
std::vector<Document> read_documents(const std::string& path, const std::string& json_key);

}  // namespace fluid
