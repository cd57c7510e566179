#include "frontend/readers/json_lines.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "ir/error.h"
#include "ir/text.h"

namespace fluid {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

/// Appends the elements of `json` to `value`. All arrays at one depth must have equal lengths.
/// `fail`(message) throws.
template <class Fail>
void flatten(const Json& json, size_t depth, LineValue& value, const Fail& fail) {
  if (depth > kMaxJsonDepth) fail("holds arrays that are nested too deeply");
  if (json.is_array()) {
    const auto length = static_cast<int64_t>(json.size());
    if (value.shape.size() == depth && value.numbers.empty()) value.shape.push_back(length);
    if (depth >= value.shape.size() || value.shape[depth] != length) {
      fail("holds arrays of several lengths");
    }
    for (const Json& element : json) flatten(element, depth + 1, value, fail);
    return;
  }
  if (depth != value.shape.size()) fail("holds arrays of several lengths");
  if (json.is_string() && depth == 0) {
    value.is_text = true;
    value.text = json.get<std::string>();
  } else if (json.is_null()) {
    value.has_missing = true;
    value.numbers.push_back(kMissing);
  } else if (json.is_number() || json.is_boolean()) {
    const double number = json.is_boolean() ? (json.get<bool>() ? 1.0 : 0.0) : json.get<double>();
    const double limit =
        json.is_number_float() ? double{std::numeric_limits<float>::max()} : kMaxJsonInteger;
    if (!(std::abs(number) <= limit)) fail("holds a number that is too large");
    value.is_integer = value.is_integer && !json.is_number_float();
    value.numbers.push_back(number);
  } else {
    fail("holds neither numbers nor a string");
  }
}

}  // namespace

int64_t KeyColumn::numel() const {
  int64_t n = 1;
  for (const int64_t extent : shape) n *= extent;
  return n;
}

struct JsonLine::Object {
  Json json;
};

JsonLine::JsonLine(const TextRecord& record, const std::string& path)
    : record_(record), path_(path), entries_(parse_plain_json(record.text)) {
  if (entries_) return;
  object_ = std::make_unique<const Object>(
      Object{Json::parse(record.text, nullptr, /*allow_exceptions=*/false)});
  if (!object_->json.is_object()) fail("not a JSON object");
}

JsonLine::~JsonLine() = default;

std::vector<std::string> JsonLine::keys() const {
  std::vector<std::string> keys;
  if (entries_) {
    for (const PlainJsonEntry& entry : *entries_) keys.emplace_back(entry.key);
  } else {
    for (const auto& [key, value] : object_->json.items()) keys.push_back(key);
  }
  return keys;
}

std::optional<LineValue> JsonLine::value_at(const std::string& key) const {
  if (entries_) {
    const auto entry = std::ranges::find(*entries_, key, &PlainJsonEntry::key);
    return entry == entries_->end() ? std::nullopt : entry->value;
  }
  const auto found = object_->json.find(key);
  if (found == object_->json.end() || found->is_null()) return std::nullopt;
  LineValue value;
  flatten(*found, 0, value,
          [&](const std::string& message) { fail("key '" + key + "' " + message); });
  return value;
}

std::optional<LineValue> JsonLine::value_of(const KeyColumn& column) const {
  std::optional<LineValue> value = value_at(column.key);
  if (!value || value->has_missing) {
    if (column.missing.kind == MissingRule::kDropRow) return std::nullopt;
    if (column.holds_text || !column.missing.fills_in()) fail_missing(column);
  }
  if (!value) {
    return LineValue{.shape = column.shape,
                     .numbers = std::vector<double>(static_cast<size_t>(column.numel()), kMissing),
                     .has_missing = true};
  }
  if (value->is_text != column.holds_text || value->shape != column.shape) {
    fail("key '" + column.key + "' has another type or length than in the first line");
  }
  return value;
}

void JsonLine::fail_missing(const KeyColumn& column) const {
  const std::vector<std::string> all = keys();
  const bool is_null = std::ranges::find(all, column.key) != all.end();
  const std::string lack = "key '" + column.key + "' has no value" + (is_null ? " (null): " : ": ");
  if (column.missing.kind == MissingRule::kDroppedInTraining) {
    fail(lack +
         "training left such lines out; fill it in, or add missing=drop to leave this line "
         "out, or missing=NUMBER");
  }
  fail(lack + "fill it in, or leave the line or the key out, or " +
       missing_rule_hint(column.missing_option, column.key,
                         column.holds_text ? "drop" : "drop|mean|NUMBER"));
}

std::string JsonLine::location() const { return ir::file_and_line(path_, record_.line()); }

void JsonLine::fail(const std::string& message) const {
  throw UserError(location() + ": " + message);
}

}  // namespace fluid
