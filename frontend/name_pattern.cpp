#include "frontend/name_pattern.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "ir/error.h"
#include "ir/near.h"

namespace fluid {
namespace {

/// Translates a pattern to a regular expression in ECMAScript syntax.
class Translation {
 public:
  explicit Translation(std::string_view text) : text_(text) {}

  std::string run() {
    while (at_ < text_.size()) next();
    if (!open_.empty()) fail(open_.back());
    return regex_;
  }

 private:
  void next() {
    const char c = text_[at_++];
    switch (c) {
      case '*':
        regex_ += ".*";
        break;
      case '?':
        regex_ += '.';
        break;
      case '[':
        character_class();
        break;
      case '{':
        open('{', "(?:");
        break;
      case '(':
        open('(', "(");
        if (text_.substr(at_).starts_with(".*)")) ++at_;
        break;
      case '}':
        close('{', c);
        break;
      case ')':
        close('(', c);
        break;
      case ',':
        regex_ += !open_.empty() && open_.back() == '{' ? '|' : ',';
        break;
      case '\\':
        if (at_ == text_.size()) fail('\\');
        literal(text_[at_++]);
        break;
      default:
        literal(c);
    }
  }

  void open(char bracket, const char* regex) {
    open_.push_back(bracket);
    regex_ += regex;
  }

  void close(char opening, char bracket) {
    if (open_.empty() || open_.back() != opening) fail(bracket);
    open_.pop_back();
    regex_ += ')';
  }

  void character_class() {
    const size_t end = text_.find(']', at_ + 1);
    if (end == std::string_view::npos) fail('[');
    std::string_view inside = text_.substr(at_, end - at_);
    at_ = end + 1;
    regex_ += '[';
    if (inside.starts_with('!')) {
      regex_ += '^';
      inside.remove_prefix(1);
    }
    for (const char c : inside) {
      if (c == '\\' || c == '[' || c == '^') regex_ += '\\';
      regex_ += c;
    }
    regex_ += ']';
  }

  void literal(char c) {
    if (std::string_view(".^$|()[]{}*+?\\").find(c) != std::string_view::npos) regex_ += '\\';
    regex_ += c;
  }

  [[noreturn]] void fail(char bracket) const {
    throw UserError("pattern '" + std::string(text_) + "': '" + bracket + "' has no partner");
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string open_;  ///< stack of open brackets
  std::string regex_;
};

std::regex compiled(std::string_view text) {
  try {
    return std::regex(Translation(text).run());
  } catch (const std::regex_error&) {
    throw UserError("pattern '" + std::string(text) + "': the characters in [] are not a range");
  }
}

constexpr size_t kMaxSuggestions = 8;  ///< maximum number of names in a suggestion

/// Returns the longest run of letters, digits and underscores in `text`.
std::string longest_word(std::string_view text) {
  std::string_view longest;
  for (size_t begin = 0; begin < text.size(); ++begin) {
    const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
    const auto end =
        std::find_if_not(text.begin() + static_cast<ptrdiff_t>(begin), text.end(), is_word);
    const std::string_view word(text.begin() + static_cast<ptrdiff_t>(begin), end);
    if (word.size() > longest.size()) longest = word;
    begin += word.size();
  }
  return std::string(longest);
}

}  // namespace

NamePattern::NamePattern(std::string_view text) : text_(text), matcher_(compiled(text)) {}

bool NamePattern::has_wildcard() const {
  for (size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\\') {
      ++i;
    } else if (std::string_view("*?[").find(text_[i]) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

bool NamePattern::matches(const std::string& name) const {
  return std::regex_match(name, matcher_);
}

bool NamePattern::selects(const std::string& name) const {
  for (size_t end = name.find('.'); end != std::string::npos; end = name.find('.', end + 1)) {
    if (matches(name.substr(0, end))) return true;
  }
  return matches(name);
}

std::optional<std::string> NamePattern::renamed(const std::string& name,
                                                const std::string& replacement) const {
  std::smatch match;
  if (!std::regex_match(name, match, matcher_)) return std::nullopt;
  return match.format(replacement);
}

std::string pattern_suggestion(const std::string& pattern, std::span<const std::string> names) {
  const NamePattern anywhere("*" + pattern);
  const auto selects = [&](const std::string& name) { return anywhere.selects(name); };
  const auto first = std::ranges::find_if(names, selects);
  if (first != names.end()) {
    return "; did you mean '" + anywhere.text() + "', which matches '" + *first + "'?";
  }
  const std::string word = longest_word(pattern);
  std::vector<std::string> similar;
  std::ranges::copy_if(names, std::back_inserter(similar), [&](const std::string& name) {
    return !word.empty() && name.find(word) != std::string::npos;
  });
  return "; there are " +
         nearest_names(pattern, similar.empty() ? names : std::span<const std::string>(similar),
                       kMaxSuggestions);
}

}  // namespace fluid
