// The parser of plain JSON objects against nlohmann-json.

#include "frontend/readers/plain_json.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/support/draw.h"

namespace fluid::plain_json_test {
namespace {

using Json = nlohmann::ordered_json;

/// Appends the elements of `json` to `value`.
void flatten(const Json& json, size_t depth, LineValue& value) {
  if (json.is_array()) {
    if (value.shape.size() == depth) value.shape.push_back(std::ssize(json));
    EXPECT_EQ(value.shape[depth], std::ssize(json));
    for (const Json& element : json) flatten(element, depth + 1, value);
    return;
  }
  EXPECT_EQ(value.shape.size(), depth);
  value.is_text = json.is_string();
  if (json.is_string()) {
    value.text = json.get<std::string>();
  } else if (json.is_null()) {
    value.has_missing = true;
    value.numbers.push_back(std::numeric_limits<double>::quiet_NaN());
  } else {
    value.is_integer = value.is_integer && !json.is_number_float();
    value.numbers.push_back(json.is_boolean() ? (json.get<bool>() ? 1.0 : 0.0)
                                              : json.get<double>());
  }
}

void expect_same(const LineValue& value, const LineValue& expected) {
  EXPECT_EQ(value.is_text, expected.is_text);
  EXPECT_EQ(value.text, expected.text);
  EXPECT_EQ(value.is_integer, expected.is_integer);
  EXPECT_EQ(value.has_missing, expected.has_missing);
  EXPECT_EQ(value.shape, expected.shape);
  const auto bits_of = [](const std::vector<double>& numbers) {
    std::vector<uint64_t> bits;
    for (const double number : numbers) bits.push_back(std::bit_cast<uint64_t>(number));
    return bits;
  };
  EXPECT_EQ(bits_of(value.numbers), bits_of(expected.numbers));
}

/// Returns whether `text` is plain. Its values must then be those of nlohmann-json.
bool is_plain(const std::string& text) {
  SCOPED_TRACE(text);
  const auto entries = parse_plain_json(text);
  if (!entries) return false;
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  EXPECT_TRUE(json.is_object());
  if (!json.is_object()) return true;
  EXPECT_EQ(json.size(), entries->size());
  for (const PlainJsonEntry& entry : *entries) {
    const auto found = json.find(std::string(entry.key));
    EXPECT_TRUE(found != json.end());
    if (found == json.end() || found->is_null()) {
      EXPECT_FALSE(entry.value.has_value());
      continue;
    }
    LineValue expected;
    flatten(*found, 0, expected);
    EXPECT_TRUE(entry.value.has_value());
    if (entry.value) expect_same(*entry.value, expected);
  }
  return true;
}

const std::vector<std::string> kPlain = {
    "{}",
    " { } \r\n",
    R"({"a": 1, "b": -2.5e-3, "c": true, "d": false, "e": null, "f": "x, y"})",
    R"({"x": [[1, 2], [3.5, null]], "y":[[[-0]],[[-0.0]]], "z z": [9007199254740991, 0.1]})",
    R"({"": 1E+5, "t": "", "i": [true, 12345678]})",
    "{\"a\"\t:\n[ 1 ,\r2 ] , \"b\":0.0}"};

TEST(PlainJson, HasTheValuesOfAGeneralParser) {
  for (const std::string& text : kPlain) EXPECT_TRUE(is_plain(text)) << text;
}

TEST(PlainJson, LeavesOtherTextToAGeneralParser) {
  for (const std::string value : {"01",
                                  "-",
                                  ".5",
                                  "5.",
                                  "1e",
                                  "+1",
                                  "1.e5",
                                  "1e39",
                                  "9007199254740992",
                                  "[1, [2]]",
                                  "[[1], 2]",
                                  "[[1], [2, 3]]",
                                  "[]",
                                  "[1,]",
                                  "[\"a\"]",
                                  "{}",
                                  "nul",
                                  "nullx",
                                  "\"a\\n\"",
                                  "\"\t\"",
                                  "\"\xc3\xa9\"",
                                  "\"a",
                                  "NaN",
                                  "inf",
                                  "[[[[[[[[[1]]]]]]]]]"}) {
    EXPECT_FALSE(is_plain("{\"a\": " + value + "}")) << value;
  }
  for (const std::string text : {"", "[1]", "{\"a\": 1, \"a\": 2}", "{\"a\": 1} 2", "{\"a\": 1,}",
                                 "{\"a\" 1}", "{a: 1}", "{\"a\": 1", "\xef\xbb\xbf{\"a\": 1}"}) {
    EXPECT_FALSE(is_plain(text)) << text;
  }
}

TEST(PlainJson, IsFoundInDamagedText) {
  testing::Draw draw(1);
  const std::string characters = "{}[]\",:0123456789.-+eEtfn \\ux\t";
  int64_t plain = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = draw.one_of(kPlain);
    for (int64_t changes = 1 + draw.below(3); changes > 0; --changes) {
      const auto at = static_cast<size_t>(draw.below(std::ssize(text)));
      const char c = characters[static_cast<size_t>(draw.below(std::ssize(characters)))];
      if (draw.one_in(3)) {
        text.insert(at, 1, c);
      } else {
        text[at] = c;
      }
    }
    plain += is_plain(text) ? 1 : 0;
  }
  EXPECT_GT(plain, 1000);
}

}  // namespace
}  // namespace fluid::plain_json_test
