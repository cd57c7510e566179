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
  expect_error(good + "{\"b\": [1, 2]}\n", ":2: key 'a' has no value");
  expect_error(good + "{\"a\": [1, 2, 3]}\n", ":2: key 'a' has another type or length");
  expect_error(good + "{\"a\": \"1\"}\n", ":2: key 'a' has another type or length");
  for (const std::string ragged : {"[[1], [2, 3]]", "[1, [2]]", "[[1], 2]"}) {
    expect_error("{\"a\": " + ragged + "}\n", ":1: key 'a' holds arrays of several lengths");
  }
  expect_error("{\"a\": {}}\n", ":1: key 'a' holds neither numbers nor a string");
  expect_error(
      "{\"a\": null}\n",
      ":1: key 'a' has no value (null): fill it in, or leave the line or the key out, or add "
      "missing=drop|mean|NUMBER");
  expect_error("{\"a\": 1e39}\n", ":1: key 'a' holds a number that is too large");
  expect_error("{\"a\": 9007199254740993}\n", ":1: key 'a' holds a number that is too large");
  expect_error("{\"a\": " + std::string(100000, '[') + std::string(100000, ']') + "}\n",
               ":1: key 'a' holds arrays that are nested too deeply");
  const Dataset data = read("{\"a\": null}\n{\"b\": 1}\nno\n{\"b\": 3}\n", "", BadRecords::skip);
  EXPECT_EQ(values(*data.find("b")), (std::vector<double>{1, 3}));
  EXPECT_EQ(data.skipped.count, 2);
  EXPECT_TRUE(states(data.skipped.errors.front(), "t.jsonl:1: key 'a'"));
}

TEST_F(JsonLinesTest, MissingValuesFollowARule) {
  const std::string text =
      "{\"a\": null, \"v\": [1, null], \"n\": 7, \"t\": \"x\"}\n"
      "{\"a\": 2.5, \"v\": [3, 10], \"n\": 8, \"t\": \"y\"}\n"
      "{\"v\": [null, 20], \"n\": 9, \"t\": \"x\"}\n"
      "{\"a\": 3.5, \"n\": 10, \"t\": \"y\"}\n";
  const Dataset mean = read(text, "?missing=mean");
  EXPECT_EQ(values(*mean.find("a")), (std::vector<double>{3, 2.5, 3, 3.5}));
  EXPECT_EQ(values(*mean.find("v")), (std::vector<double>{1, 15, 3, 10, 2, 20, 2, 15}));
  EXPECT_EQ(mean.find("n")->str(), "i64[4]") << "nothing is missing";
  const Dataset mixed = read(text, "?missing=a:mean,v:0");
  EXPECT_EQ(mixed.find("v")->str(), "i64[4, 2]");
  EXPECT_EQ(values(*mixed.find("v")), (std::vector<double>{1, 0, 3, 10, 0, 20, 0, 0}));
  EXPECT_EQ(read(text, "?missing=0.5&columns=v").find("v")->str(), "f32[4, 2]");
  const Dataset dropped = read(text, "?missing=drop");
  EXPECT_EQ(values(*dropped.find("n")), std::vector<double>{8});
  EXPECT_EQ(dropped.source_index(0), 1);
  EXPECT_EQ(values(*read(text, "?missing=drop,v:mean").find("n")), (std::vector<double>{8, 10}));
  expect_user_error([&] { read(text, "?missing=a:mean"); }, path_ + ":1: key 'v' has no value");
  expect_user_error([&] { read(text, "?missing=b:mean"); }, "option missing: no column 'b'");
  expect_user_error([&] { read("{\"a\": null}\n{\"a\": null}\n", "?missing=mean"); },
                    "key 'a' has no value in any line");
  expect_user_error([&] { read("{\"t\": \"x\"}\n{\"t\": null}\n", "?missing=mean"); },
                    path_ +
                        ":2: key 't' has no value (null): fill it in, or leave the line or the "
                        "key out, or write missing=mean,t:drop");
  const std::string part =
      "{\"a\": 1.5, \"p\": \"train\"}\n{\"a\": null, \"p\": \"val\"}\n"
      "{\"a\": 9.5, \"p\": \"val\"}\n";
  write_plain(path_, part);
  const std::string spec = "jsonl:" + path_ + "?split=p&missing=mean";
  EXPECT_EQ(values(*open_data(spec, "val").dataset().find("a")), (std::vector<double>{1.5, 9.5}));
  expect_user_error(
      [&] {
        read("{\"a\": null, \"p\": \"train\"}\n{\"a\": 2, \"p\": \"val\"}\n",
             "?split=p&missing=mean");
      },
      "key 'a' has no value in the training rows");
}

TEST_F(JsonLinesTest, KeysWithoutAnyValueAreErrorsAlsoIfBadRecordsAreSkipped) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += "{\"x\": null, \"y\": " + std::to_string(i) + "}\n";
  for (const std::string rule : {"mean", "0", "drop"}) {
    expect_user_error([&] { read(text, "?missing=" + rule, BadRecords::skip); },
                      "key 'x' has no value in any line");
  }
}

TEST_F(JsonLinesTest, RulesForMissingValuesFitTheirKeys) {
  const std::string text = "{\"t\": \"x\", \"y\": 1}\n{\"t\": \"y\", \"y\": null}\n";
  expect_user_error([&] { read(text, "?missing=t:mean,y:0"); },
                    "option missing fills in key 't', which holds strings: its rule is error or "
                    "drop");
  EXPECT_EQ(values(*read(text, "?missing=t:drop,y:0").find("y")), (std::vector<double>{1, 0}));
  EXPECT_EQ(read(text, "?missing=y:9007199254740991").find("y")->str(), "i64[2]");
  const Dataset floats = read(text, "?missing=y:1e20");
  EXPECT_EQ(floats.find("y")->str(), "f32[2]") << "an i64 does not hold 1e20";
  EXPECT_EQ(floats.find("y")->at(1), 1e20F);
  expect_user_error([&] { read(text, "?missing=y:1e300"); },
                    "option missing: 1e300 is beyond the range of f32");
  expect_user_error(
      [&] { read("{\"a\": 1, \"b\": null}\n{\"a\": null, \"b\": 1}\n", "?missing=drop"); },
      "missing=drop leaves out every row");
}

TEST_F(JsonLinesTest, NormalizesKeysByTheTrainingRows) {
  const std::string text =
      "{\"x\": [1, 10], \"n\": 1, \"y\": 5}\n{\"x\": [3, 10], \"n\": 5, \"y\": 6}\n";
  const std::string options = "?normalize=x,n";
  const Dataset data = read(text, options);
  EXPECT_EQ(data.find("n")->str(), "f32[2]");
  EXPECT_EQ(values(*data.find("x")), (std::vector<double>{-1, 0, 1, 0}));
  EXPECT_EQ(values(*data.find("n")), (std::vector<double>{-1, 1}));
  EXPECT_EQ(values(*data.find("y")), (std::vector<double>{5, 6}));
  write_plain(path_, "{\"x\": [5, 11], \"n\": 3}\n");
  const Dataset other =
      open_data("jsonl:" + path_, "test", {.training_table = data.table}).dataset();
  EXPECT_EQ(values(*other.find("x")), (std::vector<double>{3, 1}));
  EXPECT_EQ(values(*other.find("n")), std::vector<double>{0});
  expect_user_error([&] { read(text, "?normalize=z"); }, "option normalize: no key 'z' of numbers");
  expect_user_error([&] { read("{\"t\": \"x\"}\n", "?normalize=t"); },
                    "option normalize: no key 't' of numbers");
}

TEST_F(JsonLinesTest, TrainingDataDecidesWhichColumnsAreF32) {
  const Dataset train =
      read("{\"a\": 0.5, \"b\": null}\n{\"a\": 1, \"b\": 2}\n", "?missing=a:error,b:drop");
  EXPECT_EQ(train.find("a")->str(), "i64[1]") << "only the second line is read";
  const Dataset floats = read("{\"a\": 0.5}\n{\"a\": 1}\n");
  write_plain(path_, "{\"a\": 2}\n");
  const OpenOptions options = {.training_table = floats.table};
  EXPECT_EQ(open_data("jsonl:" + path_, "test", options).dataset().find("a")->str(), "f32[1]");
  write_plain(path_, "{\"a\": 2, \"b\": null}\n");
  expect_user_error(
      [&] { open_data("jsonl:" + path_, "test", {.training_table = train.table}); },
      path_ +
          ":1: key 'b' has no value (null): training left such lines out; fill it in, or add "
          "missing=drop to leave this line out, or missing=NUMBER");
}

}  // namespace
}  // namespace fluid::jsonl_test
