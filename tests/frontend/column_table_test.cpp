// Data that is read by the table of columns of the training data.

#include "frontend/readers/column_table.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "frontend/files/safetensors.h"
#include "frontend/readers/reader.h"
#include "frontend/readers/spec.h"
#include "tests/support/errors.h"
#include "tests/support/image_files.h"
#include "tests/support/temp_dir.h"

namespace fluid::column_table_test {
namespace {

class ColumnTables : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    write_plain(dir_.file(name), text);
    return dir_.file(name);
  }
  /// The data of a file that is read by `table`.
  static Dataset read(const std::string& spec, const ColumnTablePtr& table,
                      const std::string& split = "test") {
    return open_data(spec, split, {.training_table = table}).dataset();
  }
  static std::vector<double> values(const Dataset& data, const std::string& column) {
    std::vector<double> all;
    const Tensor& tensor = *data.find(column);
    for (int64_t i = 0; i < tensor.numel(); ++i) all.push_back(tensor.at(i));
    return all;
  }
  using Values = std::vector<double>;

  /// The table of training rows of which x is (rooms, age), with a city and the label kind.
  ColumnTablePtr trained(const std::string& more = "") const {
    const std::string path = write("train.csv",
                                   "id,rooms,city,age,kind\n"
                                   "7,1,Rome,10,flat\n"
                                   "8,3,Oslo,,house\n"
                                   "9,5,Rome,30,flat\n");
    return open_data("csv:" + path +
                     "?label=kind&categories=city,kind&drop=id&missing=mean&normalize=1" + more)
        .source->table();
  }

  TempDir dir_;
};

TEST_F(ColumnTables, OtherDataIsReadAsTheTrainingData) {
  const ColumnTablePtr table = trained();
  ASSERT_NE(table, nullptr);
  const std::string spec = "csv:" + write("new.csv",
                                          "kind,age,note,rooms,city\n"
                                          "house,,late,5,Oslo\n"
                                          "flat,30,,3,Rome\n");
  const Dataset data = read(spec, table);
  const double std = std::sqrt(8.0 / 3);
  ASSERT_EQ(data.find("x")->str(), "f32[2, 2]");
  EXPECT_NEAR(data.find("x")->at(0), 2 / std, 1e-6) << "rooms come first, as in training";
  EXPECT_EQ(data.find("x")->at(1), 0) << "the mean of age, where it is missing";
  EXPECT_EQ(data.find("x")->at(2), 0);
  EXPECT_EQ(data.find("x")->at(3), 1);
  EXPECT_EQ(values(data, "city"), (Values{0, 1}));
  EXPECT_EQ(values(data, "y"), (Values{1, 0}));
  EXPECT_EQ(data.classes.at("y"), (std::vector<std::string>{"flat", "house"}));
  const Dataset one = read("csv:" + write("one.csv", "city,rooms,age\nRome,1,10\n"), table);
  EXPECT_EQ(values(one, "city"), Values{1}) << "Oslo is not there, and keeps its id";
  EXPECT_EQ(one.find("y"), nullptr) << "no label to predict";
}

TEST_F(ColumnTables, OptionsOfTheSpecOverrideTheTable) {
  const ColumnTablePtr table = trained();
  const std::string spec = "csv:" + write("new.csv", "city,rooms,age,kind\nRome,1,10,?\n");
  expect_user_error([&] { read(spec, table); }, "new.csv:2: column 'kind': no category '?' in the");
  EXPECT_EQ(read(spec + "?label=", table).find("y"), nullptr);
  EXPECT_EQ(values(read(spec + "?label=&normalize=0", table), "x"), (Values{1, 10}));
  EXPECT_EQ(values(read(spec + "?label=&normalize=0&columns=age", table), "x"), Values{10});
  EXPECT_EQ(values(read(spec + "?label=&normalize=0&drop=age,kind", table), "x"), Values{1});
  EXPECT_EQ(values(read(spec + "?label=&columns=age&categories=", table), "x"), Values{-1});
  EXPECT_EQ(values(read("csv:" + write("turned.csv", "id,age,city,rooms\n5,10,Rome,1\n") +
                            "?drop=id&normalize=0",
                        table),
                   "x"),
            (Values{1, 10}))
      << "in the order of the training data";
  const Dataset plain = read(spec + "?table=none&columns=rooms,age", table);
  EXPECT_EQ(values(plain, "x"), (Values{1, 10}));
  EXPECT_EQ(plain.find("city"), nullptr);
}

TEST_F(ColumnTables, UnseenCategoriesGetTheNextIdOnRequest) {
  const std::string spec = "csv:" + write("new.csv", "city,rooms,age\nPisa,1,2\nRome,1,2\n");
  expect_user_error([&] { read(spec, trained()); },
                    "new.csv:2: column 'city': no category 'Pisa' in the training data; unknown=1 "
                    "gives it the id 2");
  EXPECT_EQ(values(read(spec + "?unknown=1", trained()), "city"), (Values{2, 1}));
  EXPECT_EQ(values(read(spec, trained("&unknown=1")), "city"), (Values{2, 1})) << "as in training";
}

/// A row with an unknown category is a bad record, in memory and on disk, and has no position.
TEST_F(ColumnTables, RowsOfUnseenCategoriesAreSkippedOnRequest) {
  const std::string known =
      write("known.jsonl", "{\"k\": \"a\", \"v\": 1}\n{\"k\": \"b\", \"v\": 2}\n");
  const ColumnTablePtr of_jsonl = open_data("jsonl:" + known).source->table();
  std::string csv = "city,rooms,age\n", jsonl;
  for (int i = 0; i < 8; ++i) {
    csv += std::string(i % 4 == 1 ? "Pisa" : "Rome") + "," + std::to_string(i) + ",2\n";
    jsonl += "{\"k\": \"" + std::string(i % 4 == 1 ? "c" : "b") +
             "\", \"v\": " + std::to_string(i) + "}\n";
  }
  const std::string csv_spec = "csv:" + write("new.csv", csv);
  const std::string jsonl_spec = "jsonl:" + write("new.jsonl", jsonl);
  for (const std::string memory : {"?memory=0", "?memory=1"}) {
    for (const bool is_csv : {true, false}) {
      SCOPED_TRACE((is_csv ? csv_spec : jsonl_spec) + memory);
      const std::string spec = (is_csv ? csv_spec : jsonl_spec) + memory;
      const OpenOptions options = {.bad_records = BadRecords::skip,
                                   .training_table = is_csv ? trained() : of_jsonl};
      const SampleSourcePtr all = open_data(spec, "train", options).source;
      EXPECT_EQ(all->samples(), 6);
      EXPECT_EQ(all->skipped().count, 2);
      ASSERT_FALSE(all->skipped().errors.empty());
      EXPECT_TRUE(states(all->skipped().errors.front(),
                         is_csv ? "new.csv:3: column 'city': no category 'Pisa'"
                                : "new.jsonl:2: key 'k': no category 'c'"));
      EXPECT_EQ(open_data(spec + "&val=0.5", "val", options).source->samples(), 3);
    }
  }
}

TEST_F(ColumnTables, MistakesAreNamed) {
  const ColumnTablePtr table = trained();
  expect_user_error([&] { read("csv:" + write("a.csv", "city,room,age\nRome,1,2\n"), table); },
                    "no column 'rooms', which the training data had (did you mean 'room'?)");
  const std::string other = "csv:" + write("b.csv", "a,c\n1,red\n");
  expect_user_error([&] { read(other + "?columns=a&categories=", table); },
                    "the training data was not read with column 'a' in this way: table=none learns "
                    "it from this data");
  expect_user_error([&] { read(other + "?columns=&categories=c", table); },
                    "was not read with column 'c' in this way: table=none");
  expect_user_error([&] { read(other + "?columns=a,missing&categories=", table); },
                    "no column 'missing'");
}

TEST_F(ColumnTables, RowsThatTrainingDropsAreAnErrorInOtherData) {
  const std::string path = write("train.csv", "a,b\n1,2\n,3\n");
  const ColumnTablePtr table = open_data("csv:" + path + "?missing=drop").source->table();
  expect_user_error(
      [&] { read("csv:" + path, table); },
      "train.csv:3: column 'a' has no value: training left such rows out; fill it in, "
      "or add missing=drop to leave this row out, or missing=NUMBER");
  const ColumnTablePtr kept = read("csv:" + write("whole.csv", "a,b\n1,2\n"), table).table;
  EXPECT_EQ(kept->options.at("missing"), "drop");
  EXPECT_EQ(values(read("csv:" + path + "?missing=drop", kept), "x"), (Values{1, 2}));
  EXPECT_EQ(values(read("csv:" + path + "?missing=7", kept), "x"), (Values{1, 2, 7, 3}));
}

TEST_F(ColumnTables, FilesOfParametersKeepIt) {
  const ColumnTablePtr table = trained();
  const Tensor w(f32, {2});
  write_safetensors(dir_.file("w.safetensors"), {{"w", w}},
                    {{kColumnTableMetadata, table->to_json()}});
  write_safetensors(dir_.file("bare.safetensors"), {{"w", w}});
  const ColumnTablePtr kept = read_column_table_metadata(dir_.file("w.safetensors"));
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(*kept, *table);
  EXPECT_EQ(read_column_table_metadata(dir_.file("bare.safetensors")), nullptr);
  const std::string spec = "csv:" + write("new.csv", "city,rooms,age\nRome,3,20\n") + "?table=";
  EXPECT_EQ(values(open_data(spec + dir_.file("w.safetensors"), "test").dataset(), "x"),
            (Values{0, 0}));
  expect_user_error([&] { open_data(spec + dir_.file("bare.safetensors")); },
                    "bare.safetensors' holds no table of columns");
  expect_user_error([&] { open_data("jsonl:x?table=" + dir_.file("w.safetensors")); },
                    "w.safetensors' is a table of csv data");
}

TEST_F(ColumnTables, TextsOfOtherVersionsAreChecked) {
  EXPECT_EQ(ColumnTable::from_json(trained()->to_json(), "t"), *trained());
  const ColumnTable old = ColumnTable::from_json(
      R"({"moments": {"a": {"mean": 1, "std": 2}}, "classes": {"c": ["x"]}})", "t");
  EXPECT_EQ(old.moments.at("a").std, 2) << "a file of the option table of an older Fluid";
  EXPECT_TRUE(old.columns.empty());
  for (const char* text :
       {R"({"version": 2})", R"({"version": 2, "moments": {}, "classes": {}})"}) {
    expect_user_error([&] { ColumnTable::from_json(text, "t"); },
                      "'t' holds a table of columns of version 2, which a newer Fluid wrote");
  }
  for (const char* text : {"", "[]", R"({"moments": {}, "classes": {}, "feeds": 3})"}) {
    expect_user_error([&] { ColumnTable::from_json(text, "t"); },
                      "'t' is not a table of columns that Fluid wrote");
  }
}

TEST_F(ColumnTables, FeedsAreNamedAsTheyAreFed) {
  const std::string spec =
      "csv:" + dir_.file("train.csv") + "?label=kind&categories=city,kind&drop=id&missing=0";
  trained();
  const ColumnTablePtr plain = open_data(spec).source->table();
  EXPECT_EQ(plain->classes_of_feed("y"), (std::vector<std::string>{"flat", "house"}));
  EXPECT_NE(open_data(spec + "&limit=1&val=0.4").source->table(), nullptr);
  const ColumnTablePtr renamed = open_data(spec + "&y=city&city=place").source->table();
  EXPECT_EQ(renamed->classes_of_feed("city"), plain->classes_of_feed("y"));
  EXPECT_EQ(renamed->classes_of_feed("place"), (std::vector<std::string>{"Oslo", "Rome"}));
  EXPECT_TRUE(renamed->classes_of_feed("y").empty());
}

TEST_F(ColumnTables, OfJsonLines) {
  const std::string train = write("t.jsonl",
                                  "{\"x\": 1, \"kind\": \"b\", \"fold\": \"train\"}\n"
                                  "{\"x\": 2, \"kind\": \"c\", \"fold\": \"train\"}\n"
                                  "{\"x\": 2, \"kind\": \"a\", \"fold\": \"val\"}\n");
  const ColumnTablePtr table = open_data("jsonl:" + train + "?split=fold").source->table();
  const auto spec = [&](const std::string& kind) {
    return "jsonl:" + write("n.jsonl", "{\"note\": \"q\", \"kind\": " + kind + ", \"x\": 1}\n");
  };
  const Dataset data = read(spec("\"c\""), table);
  EXPECT_EQ(values(data, "kind"), Values{2});
  EXPECT_EQ(data.find("note"), nullptr) << "training read no such key";
  expect_user_error([&] { read(spec("\"c\"") + "?columns=kind,note", table); },
                    "the training data was not read with column 'note' in this way");
  EXPECT_EQ(table->classes_of_feed("kind"), (std::vector<std::string>{"a", "b", "c"}));
  expect_user_error([&] { read(spec("\"d\""), table); },
                    "n.jsonl:1: key 'kind': no category 'd' in the training data; unknown=1 gives "
                    "it the id 3");
  EXPECT_EQ(values(read(spec("\"d\"") + "?unknown=1", table), "kind"), Values{3});
  expect_user_error([&] { read(spec("3"), table); },
                    "key 'kind' holds numbers, but categories in the training data");
  EXPECT_EQ(values(read("jsonl:" + train + "?split=fold", table), "kind"), Values{0})
      << "the column of the split is not kept";
}

TEST_F(ColumnTables, OfFolders) {
  const std::string image = golden_image_file("420.jpg");
  for (const char* directory : {"train/ant", "train/cat", "test/cat", "other/bee"}) {
    std::filesystem::create_directories(dir_.file(directory));
    write_plain(dir_.file(directory) + "/1.jpg", image);
  }
  const ColumnTablePtr table = open_data("folder:" + dir_.file("train")).source->table();
  const auto open = [&](const std::string& name) {
    return open_data("folder:" + dir_.file(name), "test", {.training_table = table}).source;
  };
  EXPECT_NE(open("train?limit=1&val=0.5&label=kind")->table(), nullptr);
  const SampleSourcePtr test = open("test");
  EXPECT_EQ(test->classes("label"), (std::vector<std::string>{"ant", "cat"}));
  EXPECT_NE(test->find_location("label", 1), "") << "cat, though it is the only class here";
  expect_user_error([&] { open("other"); },
                    "'" + dir_.file("other") + "/bee': no category 'bee' in the training data");
  EXPECT_NE(open("other?unknown=1")->find_location("label", 2), "");
  EXPECT_NE(open("other?table=none")->find_location("label", 0), "");
}

}  // namespace
}  // namespace fluid::column_table_test
