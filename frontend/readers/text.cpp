// The kind of data "text": windows of a text.

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <type_traits>

#include "frontend/files/gz.h"
#include "frontend/files/temporary_file.h"
#include "frontend/readers/characters.h"
#include "frontend/readers/column_table_context.h"
#include "frontend/readers/documents.h"
#include "frontend/readers/kind.h"
#include "frontend/readers/symbols.h"
#include "frontend/readers/token_file.h"
#include "frontend/tokenizers/bpe.h"
#include "ir/atomic_file.h"
#include "ir/error.h"
#include "ir/number.h"

namespace fluid {
namespace {

constexpr const char* kTextKind = "text";
constexpr int64_t kLength = 256;
constexpr double kHeldOut = 0.1;  // fraction of the text that is held out, at its end

/// Windows of `length` symbols whose starts are `stride` symbols apart. The target of a symbol is
/// the next symbol. `Symbol` is a byte (u8 columns), or the id of a token or a character (i64
/// columns).
template <class Symbol>
class Windows : public SampleSource {
 public:
  Windows(Symbols<Symbol> symbols, std::string name, int64_t length, int64_t stride,
          SkippedRecords skipped, ColumnTablePtr table)
      : symbols_(std::move(symbols)),
        name_(std::move(name)),
        length_(length),
        stride_(stride),
        skipped_(std::move(skipped)),
        table_(std::move(table)) {
    const DType dtype = std::is_same_v<Symbol, char> ? DType::u8 : DType::i64;
    columns_ = {{"text", dtype, {length}}, {"target", dtype, {length}}};
  }
  int64_t samples() const override { return (symbols_.size() - 1 - length_) / stride_ + 1; }
  const std::vector<Column>& columns() const override { return columns_; }
  void read(int64_t sample, const AugmentationSeed&,
            std::span<std::byte* const> to) const override {
    std::vector<Symbol> window(static_cast<size_t>(length_ + 1));
    symbols_.read(sample * stride_, window);
    for (int64_t c = 0; c < 2; ++c) {
      std::byte* column = to[static_cast<size_t>(c)];
      if (column == nullptr) continue;
      if constexpr (std::is_same_v<Symbol, char>) {
        std::memcpy(column, window.data() + c, static_cast<size_t>(length_));
      } else {
        std::copy_n(window.begin() + c, length_, reinterpret_cast<int64_t*>(column));
      }
    }
  }
  std::string name() const override { return name_; }
  std::vector<std::string> classes(const std::string&) const override {
    return table_ != nullptr ? table_->classes.at(kCharacterColumn) : std::vector<std::string>();
  }
  ColumnTablePtr table() const override { return table_; }
  SkippedRecords skipped() const override { return skipped_; }
  int64_t resident_bytes() const override { return symbols_.resident_bytes(); }

 private:
  Symbols<Symbol> symbols_;
  std::string name_;
  int64_t length_, stride_;
  SkippedRecords skipped_;
  ColumnTablePtr table_;  ///< the vocabulary of characters; null for other symbols
  std::vector<Column> columns_;
};

/// Returns the windows of the selected split. Splits val and test are the last tenth of the
/// symbols. Split train is the rest.
template <class Symbol>
SampleSourcePtr windows_of(Symbols<Symbol> symbols, const char* unit, const DataArgs& args,
                           SkippedRecords skipped, ColumnTablePtr table = nullptr) {
  const bool held_out = args.get_choice("split", "train", {"train", "val", "test"}) != "train";
  const int64_t length = args.get_integer("length", kLength, 1);
  const int64_t stride = args.get_integer("stride", length, 1);
  const auto train = static_cast<int64_t>(static_cast<double>(symbols.size()) * (1 - kHeldOut));
  if (held_out) {
    symbols.narrow(train, symbols.size() - train);
  } else {
    symbols.narrow(0, train);
  }
  if (symbols.size() <= length) {
    args.fail("'" + args.path() + "': the split has " + std::to_string(symbols.size()) + " " +
              unit + ", but a window of length=" + std::to_string(length) +
              " needs one more than its length");
  }
  const std::string name = "text:" + args.path() + (held_out ? "?split=val" : "?split=train");
  return std::make_shared<Windows<Symbol>>(std::move(symbols), name, length, stride,
                                           std::move(skipped), std::move(table));
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

/// Returns the bytes of a single text, or of documents. The byte of option end follows each
/// document. Holds the bytes in memory if there are fewer than `memory_limit`, else on disk.
std::shared_ptr<const ByteSource> bytes_of(const DataArgs& args, bool documents,
                                           int64_t memory_limit, SkippedRecords& skipped) {
  if (!documents) {
    auto file = open_gz_or_plain(args.path(), memory_limit);
    const bool loads = file->resident_bytes() == 0 && file->size() < memory_limit;
    return loads ? load_bytes(*file, 0, file->size()) : file;
  }
  const char end = end_byte(args);
  SpillBuffer bytes(memory_limit);
  skipped = for_each_document_part(args, [&](const DocumentPart& part) {
    bytes.append(std::as_bytes(std::span(part.text)));
    if (part.is_last) bytes.append(std::as_bytes(std::span(&end, 1)));
  });
  return bytes.release();
}

SampleSourcePtr open_bytes(const DataArgs& args) {
  const bool documents = holds_documents(args);
  for (const std::string option : {"pattern", "tokens"}) {
    if (args.find(option) == nullptr) continue;
    args.fail("option " + option + " is of a tokenizer: add bpe=DIR or bpe=FILE.tiktoken");
  }
  SkippedRecords skipped;
  auto bytes = bytes_of(args, documents, args.memory_limit(), skipped);
  return windows_of(Symbols<char>(std::move(bytes)), "bytes", args, std::move(skipped));
}

/// The tokenizer of option bpe. `path` is a directory with GPT-2's vocab.json and merges.txt, or a
/// tiktoken file. `pattern` defines the pre-tokens for a tiktoken file.
struct Tokenizer {
  std::string path;
  std::optional<PreTokens> pattern;  ///< nullopt if `path` is a directory
};

Tokenizer tokenizer_of(const DataArgs& args, const std::string& path) {
  const bool is_file = path.ends_with(".tiktoken") || std::filesystem::is_regular_file(path);
  const bool has_pattern = args.find("pattern") != nullptr;
  if (is_file && !has_pattern) {
    args.fail("the file of tiktoken '" + path +
              "' does not say how text is split: add pattern=gpt2 or pattern=cl100k");
  }
  if (!is_file && has_pattern) {
    args.fail(
        "option pattern is of bpe=FILE.tiktoken: the files of a directory split text as "
        "GPT-2");
  }
  if (!is_file) return {path, std::nullopt};
  const bool is_gpt2 = args.get_choice("pattern", "", {"cl100k", "gpt2"}) == "gpt2";
  return {path, is_gpt2 ? PreTokens::gpt2 : PreTokens::cl100k};
}

/// Returns the id of the token that ends documents. A tiktoken file does not list special tokens,
/// so option end must give the id.
int32_t end_token(const DataArgs& args, const Tokenizer& tokenizer, const Bpe& bpe) {
  if (!tokenizer.pattern) return bpe.id(args.get_string("end", "<|endoftext|>"));
  const std::string text = args.get_string("end", "");
  const std::optional<int32_t> id = parse_number<int32_t>(text);
  if (id && *id >= 0) return *id;
  args.fail("documents end with a special token, which '" + tokenizer.path +
            "' does not hold: end=" + text + " must be its id, such as end=100257");
}

/// Tokenizes the text part by part. Calls `use` with the token ids of each part. Returns the bad
/// lines, which it skipped.
template <class Use>
SkippedRecords for_each_tokens(const DataArgs& args, const Tokenizer& tokenizer, bool documents,
                               Use use) {
  const Bpe bpe = tokenizer.pattern ? Bpe(tokenizer.path, *tokenizer.pattern) : Bpe(tokenizer.path);
  const int32_t end = documents ? end_token(args, tokenizer, bpe) : 0;
  return for_each_document_part(args, [&](const DocumentPart& part) {
    std::vector<int32_t> ids;
    bpe.encode(part.text, part.name, ids, part.first_byte);
    if (documents && part.is_last) ids.push_back(end);
    use(ids);
  });
}

/// Returns the cache key of a tokenized text: a hash of the tokenizer, the options, and the name,
/// size and modification time of each file.
uint64_t token_key(const DataArgs& args, const Tokenizer& tokenizer, bool documents) {
  namespace fs = std::filesystem;
  std::string text = (documents ? "documents" : "text") + args.get_string("key", "") + '\0' +
                     args.get_string("end", "") + '\0' +
                     (args.bad_records() == BadRecords::stop ? "" : "skip");
  if (tokenizer.pattern) {
    text += args.get_string("pattern", "") + '\0' + read_file(tokenizer.path);
  } else {
    text += read_file(tokenizer.path + "/vocab.json") + '\0' +
            read_file(tokenizer.path + "/merges.txt");
  }
  for (const std::string& file : text_files(args.path())) {
    std::error_code error;
    const auto bytes = fs::file_size(file, error);
    const auto time = error ? fs::file_time_type() : fs::last_write_time(file, error);
    if (error) args.fail("cannot read '" + file + "': " + error.message());
    text += '\0' + fs::path(file).filename().string() + '\0' + std::to_string(bytes) + '\0' +
            std::to_string(time.time_since_epoch().count());
  }
  return XXH3_64bits(text.data(), text.size());
}

/// Returns the tokens in the file of option tokens=FILE. First writes the file if it is missing, or
/// if the text, the tokenizer or an option has changed.
Tokens cached_tokens(const DataArgs& args, const Tokenizer& tokenizer, bool documents,
                     const std::string& path) {
  static std::mutex mutex;  // two threads may open training and validation data at the same time
  const std::scoped_lock lock(mutex);
  const uint64_t key = token_key(args, tokenizer, documents);
  if (std::optional<Tokens> kept = open_token_file(path, key)) return *kept;
  TokenFileWriter file(path, key);
  file.commit(for_each_tokens(args, tokenizer, documents,
                              [&](const std::vector<int32_t>& ids) { file.append(ids); }));
  return open_token_file(path, key).value();
}

SampleSourcePtr open_tokens(const DataArgs& args, const Tokenizer& tokenizer) {
  const bool documents = holds_documents(args);
  if (const std::string* path = args.find("tokens")) {
    Tokens tokens = cached_tokens(args, tokenizer, documents, *path);
    return windows_of(std::move(tokens.ids), "tokens", args, std::move(tokens.skipped));
  }
  SpillBuffer all(args.memory_limit());
  SkippedRecords skipped = for_each_tokens(
      args, tokenizer, documents,
      [&](const std::vector<int32_t>& ids) { all.append(std::as_bytes(std::span(ids))); });
  return windows_of(Symbols<int32_t>(all.release()), "tokens", args, std::move(skipped));
}

SampleSourcePtr open_characters(const ColumnTableContext& context) {
  const DataArgs& args = context.args();
  for (const std::string option : {"bpe", "memory", "pattern", "tokens"}) {
    if (args.find(option) == nullptr) continue;
    const bool by_table = context.given() != nullptr;
    args.fail(
        "options characters and " + option + " exclude each other" +
        (by_table ? ": the training text was read as characters; table=none ignores that" : ""));
  }
  CharacterText text = read_characters(context, holds_documents(args));
  return windows_of(std::move(text.ids), "characters", args, std::move(text.skipped),
                    std::move(text.table));
}

SampleSourcePtr open_text(const DataArgs& args) {
  const ColumnTableContext context(args, kTextKind, /*has_splits=*/true);
  if (context.args().get_flag("characters", false)) return open_characters(context);
  for (const std::string option : {"table", "unknown"}) {
    if (args.get_string(option, "none") == "none") continue;
    args.fail("option " + option + " is of a vocabulary of characters: add characters");
  }
  const std::string* path = args.find("bpe");
  return path != nullptr ? open_tokens(args, tokenizer_of(args, *path)) : open_bytes(args);
}

}  // namespace

DataKind text_kind() {
  return {
      .name = kTextKind,
      .usage = "text:FILE",
      .doc =
          "windows of a text file, as bytes: columns text u8[length] and target u8[length], "
          "the bytes that follow those of text; split=val and split=test are the last tenth of "
          "the file; length=N bytes (256), stride=N bytes from window to window (length); "
          "characters: ids i64 of Unicode characters instead of bytes, in the order of their code "
          "points; saved parameters keep this vocabulary, and eval and predict read their text by "
          "it; unknown=1 gives other characters the next id; table= as for csv; "
          "bpe=DIR: tokens i64 of GPT-2's vocab.json and merges.txt instead of bytes; "
          "bpe=FILE.tiktoken&pattern=gpt2|cl100k: of a file of tiktoken; the files of a directory, "
          "or the strings at key=NAME of JSON lines, are documents, "
          "each followed by end=TOKEN (<|endoftext|>, the id of a token of tiktoken, a "
          "character, or the byte 0); tokens=FILE keeps the tokens on disk; memory=1 reads the "
          "bytes of a text into "
          "memory (default: below 64 MiB)",
      .has_table = true,
      .options = {"bpe", "characters", "end", "key", "length", "memory", "pattern", "split",
                  "stride", "tokens"},
      .open_source = open_text};
}

}  // namespace fluid
