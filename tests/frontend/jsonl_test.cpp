#include <gtest/gtest.h>

#include "frontend/readers/spec.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace fluid::jsonl_test {
namespace {

class JsonLinesTest : public ::testing::Test {
 protected:
  Dataset read(const std::string& text, const std::string& options = "",
               BadRecords bad_records = BadRecords::stop) const {
    write_plain(path_, text);
    return open_data("jsonl:" + path_ + options, "train", {.bad_records = bad_records}).dataset();
  }
  static std::vector<double> values(const Tensor& tensor) {
    std::vector<double> all;
    for (int64_t i = 0; i < tensor.numel(); ++i) all.push_back(tensor.at(i));
    return all;
  }

  TempDir dir_;
  std::string path_ = dir_.file("t.jsonl");
};

TEST_F(JsonLinesTest, KeysAreColumns) {
  const Dataset data = read(
      "{\"x\": [[1, 2.5], [3, 4]], \"id\": 7, \"name\": \"b\"}\r\n\n"
      "{\"id\": -8, \"name\": \"a\", \"x\": [[5, 6], [7, 8]], \"other\": null}");
  ASSERT_EQ(data.columns.size(), 3u);
  EXPECT_EQ(data.find("x")->str(), "f32[2, 2, 2]");
  EXPECT_EQ(values(*data.find("x")), (std::vector<double>{1, 2.5, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(data.find("id")->str(), "i64[2]");
  EXPECT_EQ(values(*data.find("id")), (std::vector<double>{7, -8}));
  EXPECT_EQ(values(*data.find("name")), (std::vector<double>{1, 0}));
  EXPECT_EQ(data.classes.at("name"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(data.location(1), path_ + ":3");
}

TEST_F(JsonLinesTest, TakesColumnsByName) {
  const Dataset data =
      read("{\"a\": 1, \"b\": true, \"c\": {}}\n{\"a\": 2.5, \"b\": false}\n", "?columns=b,a&a=x");
  ASSERT_EQ(data.columns.size(), 2u);
  EXPECT_EQ(data.columns[0].first, "b");
  EXPECT_EQ(values(*data.find("b")), (std::vector<double>{1, 0}));
  EXPECT_EQ(data.find("x")->str(), "f32[2]") << "not all are integers";
}

TEST_F(JsonLinesTest, MistakesAreNamedByLineAndKey) {
  const auto expect_error = [&](const std::string& text, const std::string& message) {
    expect_user_error([&] { read(text); }, path_ + message);
  };
  const std::string good = "{\"a\": [1, 2]}\n";
  expect_error(" \n", " holds no sample");
  expect_error(good + "{\"a\": [1, 2}\n", ":2: not a JSON object");
  expect_error(good + "[1]\n", ":2: not a JSON object");
  expect_error("{}\n", ":1: the object has no key");
  expect_error(good + "{\"b\": [1, 2]}\n", ":2: no key 'a'");
  expect_error(good + "{\"a\": [1, 2, 3]}\n", ":2: key 'a' has another type or length");
  expect_error(good + "{\"a\": \"1\"}\n", ":2: key 'a' has another type or length");
  for (const std::string ragged : {"[[1], [2, 3]]", "[1, [2]]", "[[1], 2]"}) {
    expect_error("{\"a\": " + ragged + "}\n", ":1: key 'a' holds arrays of several lengths");
  }
  expect_error("{\"a\": null}\n", ":1: key 'a' holds neither numbers nor a string");
  expect_error("{\"a\": 1e39}\n", ":1: key 'a' holds a number that is too large");
  expect_error("{\"a\": 9007199254740993}\n", ":1: key 'a' holds a number that is too large");
  expect_error("{\"a\": " + std::string(100000, '[') + std::string(100000, ']') + "}\n",
               ":1: key 'a' holds arrays that are nested too deeply");
  const Dataset data = read("{\"a\": null}\n{\"b\": 1}\nno\n{\"b\": 3}\n", "", BadRecords::skip);
  EXPECT_EQ(values(*data.find("b")), (std::vector<double>{1, 3}));
  EXPECT_EQ(data.skipped.count, 2);
  EXPECT_TRUE(states(data.skipped.errors.front(), "t.jsonl:1: key 'a'"));
}

}  // namespace
}  // namespace fluid::jsonl_test
