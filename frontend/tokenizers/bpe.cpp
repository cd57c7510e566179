#include "frontend/tokenizers/bpe.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <queue>
#include <tuple>
#include <unordered_set>

#include "frontend/tokenizers/unicode.h"
#include "ir/atomic_file.h"
#include "ir/error.h"
#include "ir/number.h"
#include "ir/text.h"

namespace fluid {
namespace {

/// Maximum number of pre-tokens whose ids encode() caches.
constexpr size_t kMaxCachedPreTokens = 1 << 18;

/// Returns GPT-2's bytes_to_unicode() table: for each of the 256 bytes, the printable character
/// that represents it, in UTF-8.
std::array<std::string, 256> byte_characters() {
  std::array<std::string, 256> characters;
  char32_t next = 256;
  for (char32_t b = 0; b < 256; ++b) {
    const bool printable = (b > 32 && b < 127) || (b > 160 && b != 173);
    characters[b] = utf8_of(printable ? b : next++);
  }
  return characters;
}

/// Calls `use(line, line_number)` for each nonempty line of `text`. Line numbers start at 1.
template <class Use>
void for_each_line(std::string_view text, Use use) {
  for (int64_t number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) use(line, number);
  }
}

/// Splits a line of two words separated by one space. Returns two empty strings for other lines.
std::pair<std::string_view, std::string_view> words_of(std::string_view line) {
  const size_t space = line.find(' ');
  if (space == 0 || space == std::string_view::npos || space + 1 == line.size() ||
      line.find(' ', space + 1) != std::string_view::npos) {
    return {};
  }
  return {line.substr(0, space), line.substr(space + 1)};
}

/// Decodes base64 (RFC 4648, with padding). Returns "" if `text` is not base64.
std::string from_base64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  if (text.empty() || text.size() % 4 != 0) return "";
  std::string bytes;
  uint32_t bits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_padding = i + padding >= text.size();
    const size_t digit = is_padding ? 0 : kDigits.find(text[i]);
    if (digit == std::string_view::npos) return "";
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if (i % 4 != 3) continue;
    for (const int shift : {16, 8, 0}) bytes += static_cast<char>(bits >> shift & 0xFF);
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

}  // namespace

Bpe::Bpe(const std::string& directory) : vocabulary_path_(directory + "/vocab.json") {
  try {
    const nlohmann::json json = nlohmann::json::parse(read_file(vocabulary_path_));
    for (const auto& [token, id] : json.items()) ids_[token] = id.get<int32_t>();
  } catch (const nlohmann::json::exception&) {
    throw UserError("'" + vocabulary_path_ + "' is not a JSON object of tokens and their ids");
  }
  const std::array<std::string, 256> characters = byte_characters();
  for (size_t b = 0; b < characters.size(); ++b) byte_ids_[b] = id(characters[b]);
  read_merges(directory + "/merges.txt");
}

Bpe::Bpe(const std::string& file, PreTokens pattern)
    : vocabulary_path_(file), pattern_(pattern), ignore_merges_(true) {
  read_ranks();
  for (size_t b = 0; b < byte_ids_.size(); ++b) {
    const auto found = ids_.find(std::string(1, static_cast<char>(b)));
    if (found == ids_.end()) {
      throw UserError("'" + file + "' has no token of byte " + std::to_string(b));
    }
    byte_ids_[b] = found->second;
  }
  derive_merges();
}

int32_t Bpe::id(const std::string& token) const {
  const auto found = ids_.find(token);
  if (found != ids_.end()) return found->second;
  throw UserError("'" + vocabulary_path_ + "' has no token '" + token + "'");
}

void Bpe::read_merges(const std::string& path) {
  for_each_line(read_file(path), [&](std::string_view line, int64_t number) {
    if (number == 1 && line.starts_with("#version")) return;
    const auto words = words_of(line);
    const std::string first(words.first), second(words.second);
    if (first.empty()) {
      throw UserError(ir::file_and_line(path, number) + ": not two tokens and a space");
    }
    const auto rank = static_cast<int32_t>(merges_.size());
    merges_.emplace(pair_of(id(first), id(second)), Merge{rank, id(first + second)});
  });
}

void Bpe::read_ranks() {
  std::unordered_set<int32_t> ranks;
  for_each_line(read_file(vocabulary_path_), [&](std::string_view line, int64_t number) {
    const auto [base64, rank_text] = words_of(line);
    const std::string token = from_base64(base64);
    const std::optional<int32_t> rank = parse_number<int32_t>(rank_text);
    const std::string where = ir::file_and_line(vocabulary_path_, number);
    if (token.empty() || !rank || *rank < 0) {
      throw UserError(where + ": not a token in base64, a space and a rank");
    }
    if (!ids_.emplace(token, *rank).second || !ranks.insert(*rank).second) {
      throw UserError(where + ": repeats a token or a rank");
    }
  });
}

/// Sets merges_ to all pairs of tokens whose concatenation is a token.
void Bpe::derive_merges() {
  for (const auto& [token, id] : ids_) {
    for (size_t cut = 1; cut < token.size(); ++cut) {
      const auto left = ids_.find(token.substr(0, cut)), right = ids_.find(token.substr(cut));
      if (left == ids_.end() || right == ids_.end()) continue;
      merges_.emplace(pair_of(left->second, right->second), Merge{id, id});
    }
  }
}

/// Returns the token ids of a pre-token. Repeatedly merges the adjacent pair of the lowest rank,
/// leftmost first, until no adjacent pair is in merges_.
std::vector<int32_t> Bpe::merge(std::string_view pre_token) const {
  constexpr size_t kNone = std::numeric_limits<size_t>::max();
  struct Symbol {
    int32_t id = 0;
    size_t before = 0, after = 0;
    bool merged = false;  // whether this symbol was merged into the symbol to its left
  };
  struct Candidate {
    int32_t rank = 0;
    size_t left = 0, right = 0;
    int32_t left_id = 0, right_id = 0, id = 0;
    bool operator>(const Candidate& o) const {
      return std::tie(rank, left) > std::tie(o.rank, o.left);
    }
  };
  if (ignore_merges_) {
    const auto found = ids_.find(std::string(pre_token));
    if (found != ids_.end()) return {found->second};
  }
  const size_t n = pre_token.size();
  std::vector<Symbol> symbols(n);
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto consider = [&](size_t left, size_t right) {
    if (left == kNone || right == kNone) return;
    const int32_t a = symbols[left].id, b = symbols[right].id;
    const auto found = merges_.find(pair_of(a, b));
    if (found != merges_.end()) {
      queue.push({found->second.rank, left, right, a, b, found->second.id});
    }
  };
  for (size_t i = 0; i < n; ++i) {
    const int32_t id = byte_ids_[static_cast<unsigned char>(pre_token[i])];
    symbols[i] = {id, i == 0 ? kNone : i - 1, i + 1 == n ? kNone : i + 1};
  }
  for (size_t i = 0; i + 1 < n; ++i) consider(i, i + 1);
  while (!queue.empty()) {
    const Candidate c = queue.top();
    queue.pop();
    Symbol& left = symbols[c.left];
    Symbol& right = symbols[c.right];
    const bool adjacent = !left.merged && !right.merged && left.after == c.right;
    if (!adjacent || left.id != c.left_id || right.id != c.right_id) continue;
    left.id = c.id;
    left.after = right.after;
    right.merged = true;
    if (left.after != kNone) symbols[left.after].before = c.left;
    consider(left.before, c.left);
    consider(c.left, left.after);
  }
  std::vector<int32_t> ids;
  for (const Symbol& symbol : symbols) {
    if (!symbol.merged) ids.push_back(symbol.id);
  }
  return ids;
}

void Bpe::encode(std::string_view text, const std::string& source_name, std::vector<int32_t>& ids,
                 int64_t first_byte) const {
  std::unordered_map<std::string_view, std::vector<int32_t>> remembered;
  for (size_t at = 0; at < text.size();) {
    const size_t length = pre_token_length(pattern_, text, at);
    if (length == 0) {
      const int64_t position = first_byte + static_cast<int64_t>(at);
      throw UserError(source_name + ": byte " + std::to_string(position) + " is not UTF-8");
    }
    const std::string_view pre_token = text.substr(at, length);
    at += length;
    if (remembered.size() == kMaxCachedPreTokens) remembered.clear();
    const auto [found, is_new] = remembered.try_emplace(pre_token);
    if (is_new) found->second = merge(pre_token);
    ids.insert(ids.end(), found->second.begin(), found->second.end());
  }
}

}  // namespace fluid
