#pragma once

#include <optional>
#include <regex>
#include <span>
#include <string>
#include <string_view>

namespace fluid {

/// A pattern for the names of parameters and layers, such as "conv*" or "layer[34].{w,b}".
///
///   *        any characters, dots included
///   ?        one character
///   [a-c]    one of these characters; [!a-c]: one other character
///   {w,b}    one of these alternatives
///   (...)    captures the enclosed part for `$1`, `$2`... of renamed(); (*) and (.*) capture any
///            characters
///
/// All other characters match themselves. A backslash escapes the next character.
class NamePattern {
 public:
  /// Throws UserError for an unmatched bracket or an invalid character range.
  explicit NamePattern(std::string_view text);

  const std::string& text() const { return text_; }
  /// Whether the pattern contains *, ? or [. Otherwise it lists names.
  bool has_wildcard() const;
  /// Number of capture groups.
  size_t num_captures() const { return matcher_.mark_count(); }
  /// Whether the pattern matches all of `name`.
  bool matches(const std::string& name) const;
  /// Whether the pattern matches `name` or the name of a layer that contains it: "fc1" and "fc*"
  /// match "fc1.w"; "fc1" does not match "fc10.w".
  bool selects(const std::string& name) const;
  /// If the pattern matches all of `name`, returns `replacement` with `$1`...`$9` replaced by the
  /// captures. Otherwise returns nullopt.
  std::optional<std::string> renamed(const std::string& name, const std::string& replacement) const;

 private:
  std::string text_;
  std::regex matcher_;
};

/// Returns a suggestion to append to the message that `pattern` selects none of `names`. Suggests
/// "*PATTERN" if that pattern selects a name. Otherwise lists the most similar names, preferably
/// those that contain the longest word of the pattern.
std::string pattern_suggestion(const std::string& pattern, std::span<const std::string> names);

}  // namespace fluid
