// The kind of data "text": windows of a text.

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <type_traits>

#include "frontend/readers/documents.h"
#include "frontend/readers/kind.h"
#include "frontend/tokenizers/bpe.h"
#include "ir/error.h"
#include "ir/number.h"

namespace fluid {
namespace {

constexpr int64_t kLength = 256;
constexpr double kHeldOut = 0.1;  // fraction of the text that is held out, at its end

/// Windows of `length` symbols whose starts are `stride` symbols apart. The target of a symbol is
/// the next symbol. All windows share one list of symbols. `Symbol` is a byte, in a u8 column, or a
/// token id, in an i64 column.
template <class Symbol>
class Windows : public SampleSource {
 public:
  Windows(std::vector<Symbol> symbols, std::string name, int64_t length, int64_t stride)
      : symbols_(std::move(symbols)), name_(std::move(name)), length_(length), stride_(stride) {
    const DType dtype = std::is_same_v<Symbol, char> ? DType::u8 : DType::i64;
    columns_ = {{"text", dtype, {length}}, {"target", dtype, {length}}};
  }
  int64_t samples() const override {
    return (static_cast<int64_t>(symbols_.size()) - 1 - length_) / stride_ + 1;
  }
  const std::vector<Column>& columns() const override { return columns_; }
  void read(int64_t sample, const Draw&, std::span<std::byte* const> to) const override {
    const auto window = symbols_.begin() + sample * stride_;
    for (int64_t c = 0; c < 2; ++c) {
      std::byte* column = to[static_cast<size_t>(c)];
      if (column == nullptr) continue;
      if constexpr (std::is_same_v<Symbol, char>) {
        std::memcpy(column, &*window + c, static_cast<size_t>(length_));
      } else {
        std::copy_n(window + c, length_, reinterpret_cast<int64_t*>(column));
      }
    }
  }
  std::string name() const override { return name_; }
  int64_t resident_bytes() const override {
    return static_cast<int64_t>(symbols_.size() * sizeof(Symbol));
  }

 private:
  std::vector<Symbol> symbols_;
  std::string name_;
  int64_t length_, stride_;
  std::vector<Column> columns_;
};

/// Returns the windows of the split: the last tenth of the symbols, or the symbols before it for
/// split train.
template <class Symbol>
SampleSourcePtr windows_of(std::vector<Symbol> symbols, const char* unit, const DataArgs& args) {
  const bool held_out = args.get_choice("split", "train", {"train", "val", "test"}) != "train";
  const int64_t length = args.get_integer("length", kLength, 1);
  const int64_t stride = args.get_integer("stride", length, 1);
  const auto train =
      static_cast<std::ptrdiff_t>(static_cast<double>(symbols.size()) * (1 - kHeldOut));
  if (held_out) {
    symbols.erase(symbols.begin(), symbols.begin() + train);
  } else {
    symbols.resize(static_cast<size_t>(train));
  }
  if (static_cast<int64_t>(symbols.size()) <= length) {
    args.fail("'" + args.path() + "': the split has " + std::to_string(symbols.size()) + " " +
              unit + ", but a window of length=" + std::to_string(length) +
              " needs one more than its length");
  }
  const std::string name = "text:" + args.path() + (held_out ? "?split=val" : "?split=train");
  return std::make_shared<Windows<Symbol>>(std::move(symbols), name, length, stride);
}

bool holds_documents(const DataArgs& args) {
  const bool holds = args.find("key") != nullptr || std::filesystem::is_directory(args.path());
  if (!holds && args.find("end") != nullptr) {
    args.fail("option end= ends documents, and '" + args.path() +
              "' is one text: give a directory, or key=NAME for JSON lines");
  }
  return holds;
}

char end_byte(const DataArgs& args) {
  const std::string text = args.get_string("end", "0");
  const std::optional<int> value = parse_number<int>(text);
  if (!value || *value < 0 || *value > 255) {
    args.fail("option end=" + text + " must be a byte, 0 to 255; with bpe=DIR, a token");
  }
  return static_cast<char>(*value);
}

SampleSourcePtr open_bytes(const DataArgs& args) {
  std::vector<char> bytes;
  const bool documents = holds_documents(args);
  for (const Document& document : read_documents(args.path(), args.get_string("key", ""))) {
    bytes.insert(bytes.end(), document.text.begin(), document.text.end());
    if (documents) bytes.push_back(end_byte(args));
  }
  return windows_of(std::move(bytes), "bytes", args);
}

SampleSourcePtr open_tokens(const DataArgs& args, const std::string& directory) {
  const bool documents = holds_documents(args);
  const Bpe bpe(directory);
  std::vector<int32_t> ids;
  for (const Document& document : read_documents(args.path(), args.get_string("key", ""))) {
    bpe.encode(document.text, document.name, ids);
    if (documents) ids.push_back(bpe.id(args.get_string("end", "<|endoftext|>")));
  }
  return windows_of(std::move(ids), "tokens", args);
}

SampleSourcePtr open_text(const DataArgs& args) {
  const std::string* directory = args.find("bpe");
  return directory != nullptr ? open_tokens(args, *directory) : open_bytes(args);
}

}  // namespace

DataKind text_kind() {
  return {.name = "text",
          .usage = "text:FILE",
          .doc =
              "windows of a text file, as bytes: columns text u8[length] and target u8[length], "
              "the bytes that follow those of text; split=val and split=test are the last tenth of "
              "the file; length=N bytes (256), stride=N bytes from window to window (length); "
              "bpe=DIR: tokens i64 of GPT-2's vocab.json and merges.txt instead of bytes; the "
              "files of a directory, or the strings at key=NAME of JSON lines, are documents, "
              "each followed by end=TOKEN (<|endoftext|>, or the byte 0)",
          .options = {"bpe", "end", "key", "length", "split", "stride"},
          .open = open_text};
}

}  // namespace fluid
