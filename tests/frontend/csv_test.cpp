#include "frontend/files/csv.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "frontend/readers/reader.h"
#include "frontend/readers/spec.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace fluid::csv_test {
namespace {

using Records = std::vector<std::vector<std::string>>;

/// The records of a text, each after the number of its line.
Records records_of(const std::string& text) {
  Records records;
  CsvParser csv(text, "f");
  while (csv.next()) {
    std::vector<std::string>& record = records.emplace_back();
    record.push_back(std::to_string(csv.line()));
    record.insert(record.end(), csv.fields().begin(), csv.fields().end());
  }
  return records;
}

TEST(CsvParser, ReadsQuotedFields) {
  EXPECT_EQ(records_of("a,\"b,c\",\"say \"\"hi\"\", \"\"you\"\"\"\nx,\"\",\"\"\"\"\n"),
            (Records{{"1", "a", "b,c", "say \"hi\", \"you\""}, {"2", "x", "", "\""}}));
  EXPECT_EQ(records_of("a,\"two\nlines\r\n\",c\r\nd,e,f"),
            (Records{{"1", "a", "two\nlines\r\n", "c"}, {"4", "d", "e", "f"}}));
}

TEST(CsvParser, SkipsMarksEmptyLinesAndBlanks) {
  EXPECT_EQ(records_of("\xef\xbb\xbf\r\n\na, b\t,\t \"c\"\t \r\n\r\n1,,\n,\r"),
            (Records{{"3", "a", "b", "c"}, {"5", "1", "", ""}, {"6", "", ""}}));
  EXPECT_EQ(records_of(""), Records());
  EXPECT_EQ(records_of("\xef\xbb\xbf"), Records());
  EXPECT_EQ(records_of("a"), (Records{{"1", "a"}}));
}

TEST(CsvParser, MistakesAreNamedWithTheirLine) {
  expect_user_error([] { records_of("a\n1,\"2\n3\n"); }, "f:2: a quoted field does not end");
  expect_user_error([] { records_of("a\n\"1\n\" 2\n"); }, "f:3: text follows a quoted field");
  expect_user_error([] { records_of("a\n\"1\"\rb\n"); }, "f:2: text follows a quoted field");
  expect_user_error([] { records_of("\xff\xfe"); }, "f is UTF-16: save it as UTF-8");
}

TEST(CsvParser, ReadsWhatIsWritten) {
  const std::vector<std::string> fields = {"plain", "a,b", "\"", "two\nlines", "\r", ""};
  std::string text = "x";
  for (const std::string& field : fields) text += "," + quote_csv_field(field);
  std::vector<std::string> expected = {"1", "x"};
  expected.insert(expected.end(), fields.begin(), fields.end());
  EXPECT_EQ(records_of(text + "\n"), Records{expected});
  EXPECT_EQ(quote_csv_field("plain"), "plain");
}

class Csv : public ::testing::Test {
 protected:
  Dataset read(const std::string& text, const std::string& options) const {
    write_plain(path_, text);
    return open_data("csv:" + path_ + options).dataset();
  }
  void expect_error(const std::string& text, const std::string& options,
                    const std::string& message) const {
    expect_user_error([&] { read(text, options); }, message);
  }
  static std::vector<double> values(const Tensor& tensor) {
    std::vector<double> all;
    for (int64_t i = 0; i < tensor.numel(); ++i) all.push_back(tensor.at(i));
    return all;
  }

  TempDir dir_;
  std::string path_ = dir_.file("t.csv");
};

TEST_F(Csv, SplitsFeaturesFromTheLabel) {
  const std::string text = "a,\"b\",c\r\n1,2,+3\r\n\r\n4, 5.5,-6e1\n";
  const Dataset data = read(text, "?label=b");
  EXPECT_EQ(data.find("x")->str(), "f32[2, 2]");
  EXPECT_EQ(values(*data.find("x")), (std::vector<double>{1, 3, 4, -60}));
  EXPECT_EQ(data.find("y")->str(), "f32[2, 1]");
  EXPECT_EQ(data.find("y")->at(1), 5.5);
  const Dataset classes = read(text, "?label=a&classes=1");
  EXPECT_EQ(classes.find("y")->str(), "i64[2]");
}

TEST_F(Csv, NeedsNoLabel) {
  const Dataset data = read("a,b\n1,2\n3,4\n", "");
  EXPECT_EQ(data.find("x")->str(), "f32[2, 2]");
  EXPECT_EQ(data.find("y"), nullptr);
}

TEST_F(Csv, TakesColumnsByName) {
  const std::string text = "\xef\xbb\xbfid,\"name, first\",a,b,y\nr1,\"Ada \"\"A\"\"\",1,2,3\n";
  for (const std::string options :
       {"?label=y&columns=b,a", "?label=y&columns=b,a&shuffle=0", "?columns=b,a"}) {
    const Dataset data = read(text, options);
    EXPECT_EQ(values(*data.find("x")), (std::vector<double>{2, 1})) << options;
  }
  write_plain(path_, "id,a,b,y\nr1,1,2,3\n");
  const Dataset data = open_data("csv:" + path_ + "?label=y&drop=id").dataset();
  EXPECT_EQ(values(*data.find("x")), (std::vector<double>{1, 2}));
  EXPECT_EQ(data.find("y")->at(0), 3.0);
  expect_error(text, "?columns=a,c", "no column 'c'");
  expect_error(text, "?label=y&columns=a,y", "column 'y' is the label: columns names it");
  expect_error(text, "?label=y&drop=y", "column 'y' is the label: drop names it");
  expect_error(text, "?columns=a,a", "option columns names column 'a' twice");
  expect_error(text, "?columns=a&drop=b", "options columns and drop exclude each other");
  expect_error("a,y\n1,2\n", "?label=y&drop=a", "no column is left for x");
  expect_error("id,alpha\n1,2\n", "?drop=alpa", "no column 'alpa' (did you mean 'alpha'?)");
}

TEST_F(Csv, MistakesAreNamed) {
  expect_error("alpha,b\n1,2\n", "?label=alpa", "no column 'alpa' (did you mean 'alpha'?)");
  expect_error("a,b\n1,2\n", "?label=target",
               "no column 'target': leave label out where the data has none");
  expect_error("\"la\nel\",b\n1,2\n", "?label=label",
               "no column 'label' (did you mean 'la\\nel'?)");
  expect_error("a,b,b\n1,2,3\n", "?label=b", "t.csv:1: two columns are named 'b'");
  for (const std::string empty : {"", "\n\r\n"}) {
    expect_error(empty, "?label=y", "t.csv is empty: no line names the columns");
  }
  for (const std::string header : {"a,b", "a,b\n\n", "1,2\n"}) {
    expect_user_error([&] { read(header, ""); }, path_ + " has a header but no rows");
  }
  expect_error("a,b\n1,2,3\n", "?label=a", "t.csv:2: 3 fields, but the first line has 2");
  expect_error("a,b\n1,x\n", "?label=a", "t.csv:2: column 'b': 'x' is not a finite number");
  expect_error("a,b\n1,+-2\n", "?label=a", "t.csv:2: column 'b': '+-2' is not a finite number");
  expect_error("a,b\n1,-inf\n", "?label=a", "t.csv:2: column 'b': '-inf' is not a finite number");
  expect_error("a,b\n1,2\n\n1e39,2\n", "", "t.csv:4: column 'a': 1e39 is beyond the range of f32");
  expect_error("a,b\n1.5,2\n", "?label=a&classes=1",
               "t.csv:2: column 'a': 1.5 is not a class number");
}

TEST_F(Csv, TheFirstBadRowIsNamed) {
  std::string text = "a,b,c\n";
  for (int i = 0; i < 1000; ++i) {
    text += std::to_string(i) + "," + std::to_string(i) + ",t" + std::to_string(i) + "\n";
  }
  for (const std::string options : {"", "?memory=0"}) {
    expect_error(text, options,
                 "t.csv:2: column 'c': 't0' is not a finite number; add categories=c or drop=c");
  }
  expect_error(text, "?label=c", "t.csv:2: column 'c': 't0'");
  expect_error("a,b\n1,2\n1,x\n3\n", "", "t.csv:3: column 'b': 'x' is not a finite number");
  expect_error("a,b\n1,2\n3\n", "?memory=0", "t.csv:3: 1 fields, but the first line has 2");
}

TEST_F(Csv, ColumnsOfTextAreHintedAt) {
  const auto hint = [&](const std::string& options) {
    const std::string message = error_of<UserError>([&] { read("a,b\n1,x\n", options); });
    return message.substr(std::min(message.find("; "), message.size()));
  };
  EXPECT_EQ(hint(""), "; for a column of text, add categories=b or drop=b");
  EXPECT_EQ(hint("?label=b"), "; for a column of text, add categories=b");
  const std::string table = "?table=" + dir_.file("numbers.json");
  read("a,b\n1,2\n", table);
  EXPECT_EQ(hint(table), "") << "the columns are those of the table";
  const std::string infinite = error_of<UserError>([&] { read("a\n-inf\n", ""); });
  EXPECT_EQ(infinite.find("categories"), std::string::npos) << infinite;
}

TEST_F(Csv, MissingValuesAreNamedByLineAndColumn) {
  expect_error("a,b\n\"1\n\",2\n", "?columns=b&label=a",
               "t.csv:2: column 'a': '1\\n' is not a finite");
  for (const std::string missing : {"", "NA", "nan", "N/A", "null", "None", "\"\""}) {
    expect_error("a,\"b\n\",c\n1,2,3\n4,5," + missing + "\n", "",
                 "t.csv:4: column 'c' has no value");
  }
  expect_error(
      "a\n1\nNA\n", "",
      "t.csv:3: column 'a' has no value ('NA'): fill it in, or leave the row or the column out");
  EXPECT_EQ(read("a,b\n1,NA\n", "?drop=b").samples(), 1);
}

TEST_F(Csv, TakesSeveralLabels) {
  const std::string text = "a,b,c,d\n1,2,3,4\n5,6,7,8\n";
  const Dataset data = read(text, "?label=d,b");
  EXPECT_EQ(values(*data.find("x")), (std::vector<double>{1, 3, 5, 7}));
  EXPECT_EQ(data.find("y")->str(), "f32[2, 2]");
  EXPECT_EQ(values(*data.find("y")), (std::vector<double>{4, 2, 8, 6}));
  EXPECT_EQ(read(text, "?label=d,b&classes=1").find("y")->str(), "i64[2, 2]");
}

TEST_F(Csv, CategoriesBecomeIds) {
  const std::string text = "size,color,kind\n1,red,cat\n2,\"blue, dark\",dog\n3,red,ant\n";
  const Dataset data = read(text, "?label=kind&categories=color,kind");
  EXPECT_EQ(values(*data.find("x")), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(values(*data.find("color")), (std::vector<double>{1, 0, 1}));
  EXPECT_EQ(values(*data.find("y")), (std::vector<double>{1, 2, 0}));
  EXPECT_EQ(data.classes.at("color"), (std::vector<std::string>{"blue, dark", "red"}));
  EXPECT_EQ(data.classes.at("y"), (std::vector<std::string>{"ant", "cat", "dog"}));
  EXPECT_EQ(read("c\nx\n", "?categories=c").find("x"), nullptr) << "no numbers are left";
  expect_error("a,c\n1,\n", "?categories=c", "t.csv:2: column 'c' has no value");
  expect_error(text, "?label=kind&categories=color,kind&drop=color",
               "column 'color' is a category: columns and drop select x");
  expect_error(text, "?label=kind,color&categories=kind",
               "column 'kind' is a category, and not the only label");
}

TEST_F(Csv, IntegersAreColumnsOfTheirOwn) {
  const std::string text = "user,size,stars\n9007199254740993,1.5,4\n-2,2.5,3\n";
  for (const std::string memory : {"1", "0"}) {
    write_plain(path_, text);
    const SampleSourcePtr source =
        open_data("csv:" + path_ + "?label=size&integers=user,stars&memory=" + memory).source;
    Reader reader(source, {.batch = 2});
    const Batch& batch = *reader.next();
    EXPECT_EQ(batch.find("x"), nullptr);
    EXPECT_EQ(batch.find("user")->integer(0), 9007199254740993) << "no f64 represents it";
    EXPECT_EQ(batch.find("user")->integer(1), -2);
    EXPECT_EQ(batch.find("stars")->integer(1), 3);
    EXPECT_EQ(batch.find("y")->at(1), 2.5);
  }
  const std::string table = "&table=" + dir_.file("integers.json");
  read(text, "?label=size&integers=user" + table);
  const Dataset applied = read("stars,user\n3,7\n", "?" + table.substr(1));
  EXPECT_EQ(values(*applied.find("user")), std::vector<double>{7});
  EXPECT_EQ(values(*applied.find("x")), std::vector<double>{3});
  expect_error("a,b\n1,2.5\n", "?integers=b", "t.csv:2: column 'b': 2.5 is not an integer");
  expect_error("a,b\n1,9223372036854775808\n", "?integers=b", "t.csv:2: column 'b'");
  expect_error("a,b\n1,\n", "?integers=b", "t.csv:2: column 'b' has no value");
  expect_error("a,b\n1,c\n", "?integers=b", "t.csv:2: column 'b': c is not an integer");
  expect_error("a,b\n1,\n", "?integers=b&missing=mean",
               "fill it in, or leave the row or the column out, or write missing=mean,b:drop");
  EXPECT_EQ(values(*read("a,b\n1,+5\n2,-7.0\n", "?integers=b").find("b")),
            (std::vector<double>{5, -7}));
  expect_error(text, "?integers=user&categories=user",
               "options categories and integers name column 'user'");
  expect_error(text, "?integers=user&label=user", "column 'user' is the label: integers names it");
  expect_error(text, "?integers=user&drop=user", "column 'user' is an integer column");
  expect_error("x,b\n1,2\n", "?integers=x", "column 'x' can hold neither");
}

TEST_F(Csv, MissingValuesFollowARule) {
  const std::string text = "a,b,y\n1,10,0\nNA,20,0\n4,,0\n7,30,NA\n";
  const std::string lacks = "t.csv:5: column 'y' has no value ('NA')";
  expect_error(text, "?label=y&missing=mean", lacks);
  expect_error(text, "?label=y&missing=mean", "or write missing=mean,y:drop");
  expect_error(text, "?label=y&missing=y:error,mean", "or write y:drop in option missing");
  const std::string labelled = text.substr(0, text.rfind("7,"));
  EXPECT_EQ(values(*read(labelled, "?label=y&missing=mean").find("x")),
            (std::vector<double>{1, 10, 2.5, 20, 4, 15}));
  EXPECT_EQ(values(*read(labelled, "?label=y&missing=-1").find("x")),
            (std::vector<double>{1, 10, -1, 20, 4, -1}));
  const Dataset dropped = read(text, "?label=y&missing=drop");
  EXPECT_EQ(values(*dropped.find("x")), (std::vector<double>{1, 10}));
  EXPECT_EQ(dropped.skipped.count, 0) << "asked for";
  expect_error(text, "?missing=median",
               "option missing=median must be error, drop, mean or a number");
  expect_error("a,b\n,1\nNA,2\n", "?missing=mean", "column 'a' has no value in the training rows");
  for (const std::string options : {"", "&normalize=1", "&memory=0"}) {
    expect_error("a,b\n,1\n2,\n", "?missing=drop" + options, "missing=drop leaves out every row");
  }
}

TEST_F(Csv, MissingValuesFollowARuleOfTheirColumn) {
  const std::string text = "a,b,c,y\n1,10,,0\nNA,20,5,0\n4,,6,0\n7,30,7,0\n";
  EXPECT_EQ(values(*read(text, "?label=y&missing=a:drop,mean,c:-2").find("x")),
            (std::vector<double>{1, 10, -2, 4, 20, 6, 7, 30, 7}));
  expect_error(text, "?label=y&missing=b:mean,c:0", "t.csv:3: column 'a' has no value ('NA')");
  expect_error(text, "?missing=d:mean", "option missing: no column 'd'");
  expect_error(text, "?missing=a:median",
               "option missing=a:median: median must be error, drop, mean or a number");
  expect_error(text, "?missing=a:mean,a:0", "option missing names column 'a' twice");
  expect_error(text, "?missing=mean,0", "option missing has two rules for all columns");
  expect_error(text, "?label=y&missing=y:mean",
               "option missing fills in column 'y', which is not a feature");
  write_plain(path_, "k:1,y\n,0\n3,\n");
  const std::string labelled = "csv:" + path_ + "?label=y&missing=k:1:2.5,y:drop";
  const DataSource train = open_data(labelled);
  EXPECT_EQ(values(*train.dataset().find("x")), std::vector<double>{2.5});
  write_plain(path_, "k:1\n\"\"\n");
  const DataSource other =
      open_data("csv:" + path_, "test", {.training_table = train.source->table()});
  EXPECT_EQ(values(*other.dataset().find("x")), std::vector<double>{2.5}) << "it has no column y";
}

TEST_F(Csv, HoldsF64OnRequest) {
  const std::string text = "a,b,y\n0.1,1e300,0.3\n0.2,,1e-300\n";
  const Dataset data = read(text, "?label=y&dtype=f64&missing=1e-3");
  EXPECT_EQ(data.find("x")->str(), "f64[2, 2]");
  EXPECT_EQ(values(*data.find("x")), (std::vector<double>{0.1, 1e300, 0.2, 1e-3}));
  EXPECT_EQ(values(*data.find("y")), (std::vector<double>{0.3, 1e-300}));
  EXPECT_EQ(read(text, "?label=y&dtype=f64&missing=1e300").find("x")->at(3), 1e300);
  expect_error("a\n1\nNA\n", "?missing=1e300", "option missing: 1e300 is beyond the range of f32");
  const Dataset normalized = read("a\n0.1\n0.3\n", "?dtype=f64&normalize=1");
  EXPECT_NEAR(normalized.find("x")->at(1), 1, 1e-14);
  expect_error(text, "?label=y&missing=0",
               "t.csv:2: column 'b': 1e300 is beyond the range of f32; dtype=f64 reads it");
  expect_error(text, "?dtype=f16", "option dtype=f16 must be one of f32, f64");
}

TEST_F(Csv, NormalizesByTheTrainingRows) {
  std::string text = "a,b,y\n";
  for (int i = 0; i < 20; ++i) text += std::to_string(i * i) + ",3," + std::to_string(i) + "\n";
  const std::string options = "?label=y&normalize=1&val=0.25&seed=2&table=" + dir_.file("t.json");
  const Dataset plain = read(text, "?label=y&val=0.25&seed=2");
  double mean = 0, square = 0;
  for (int64_t i = 0; i < 15; ++i) mean += plain.find("x")->at(2 * i) / 15;
  for (int64_t i = 0; i < 15; ++i) square += std::pow(plain.find("x")->at(2 * i) - mean, 2) / 15;
  const Dataset held_out = open_data("csv:" + path_ + options, "test").dataset();
  EXPECT_FALSE(std::filesystem::exists(dir_.file("t.json"))) << "only training writes it";
  const Dataset train = read(text, options);
  ASSERT_EQ(train.samples(), 15);
  for (int64_t i = 0; i < 15; ++i) {
    EXPECT_NEAR(train.find("x")->at(2 * i), (plain.find("x")->at(2 * i) - mean) / std::sqrt(square),
                1e-6);
    EXPECT_EQ(train.find("x")->at(2 * i + 1), 0) << "a constant column";
  }
  const Dataset all = read(text, "?label=y");
  for (int64_t i = 0; i < held_out.samples(); ++i) {
    EXPECT_NEAR(held_out.find("x")->at(2 * i),
                (all.find("x")->at(2 * held_out.source_index(i)) - mean) / std::sqrt(square), 1e-6);
  }
}

TEST_F(Csv, TablesAreKept) {
  const std::string table = dir_.file("t.json"), options = "&normalize=1&table=" + table;
  const std::string train = "a,c,y\n1,red,0\n5,blue,1\n";
  expect_user_error(
      [&] {
        write_plain(path_, train);
        open_data("csv:" + path_ + "?label=y&categories=c" + options, "test");
      },
      "there is no table '" + table + "'");
  EXPECT_EQ(values(*read(train, "?label=y&categories=c" + options).find("x")),
            (std::vector<double>{-1, 1}));
  const Dataset other = read("a,c\n7,red\n", "?categories=c" + options);
  EXPECT_EQ(values(*other.find("x")), std::vector<double>{2});
  EXPECT_EQ(values(*other.find("c")), std::vector<double>{1});
  const std::string unseen = "a,c\n7,red\n8,blu\n";
  expect_error(unseen, "?categories=c" + options,
               "t.csv:3: column 'c': no category 'blu' (did you mean 'blue'?); unknown=1 gives it "
               "the id 2");
  EXPECT_EQ(values(*read(unseen, "?unknown=1&categories=c" + options).find("c")),
            (std::vector<double>{1, 2}));
  expect_error("a,b\n1,2\n", "?" + options.substr(1), "no column 'c', which the training data had");
  expect_error("a,b\n1,2\n", "?columns=b&categories=" + options,
               "'" + table + "' has no column 'b'");
  expect_error("a,d\n1,2\n", "?categories=d" + options, "'" + table + "' has no column 'd'");
  write_plain(table, "{\"moments\": {}}");
  expect_error(train, "?label=y&categories=c" + options,
               "'" + table + "' is not a table of columns that Fluid wrote");
  const std::string bad = dir_.file("bad.json");
  expect_error("a,y\n1,0\nx,1\n", "?label=y&table=" + bad, "t.csv:3: column 'a': 'x'");
  EXPECT_FALSE(std::filesystem::exists(bad)) << "of data that cannot be read";
  const std::string absent = dir_.file("absent.safetensors");
  expect_error(train, "?label=y&categories=c&table=" + absent,
               "there is no file '" + absent + "': a table is read from a .safetensors file");
  EXPECT_FALSE(std::filesystem::exists(absent));
  write_plain(table, R"({"moments": {"a": {"mean": 1, "std": 0}}, "classes": {}})");
  expect_error(train, "?label=y&categories=c" + options,
               "'" + table + "': the std of column 'a' is not positive");
}

TEST_F(Csv, CategoriesMayBeLatin1) {
  const Dataset data = read(
      "Stra\xdf"
      "e,y\nK\xf6ln,1\nBonn,2\n",
      "?label=y&categories=Stra\u00dfe");
  EXPECT_EQ(data.classes.at("Stra\u00dfe"), (std::vector<std::string>{"Bonn", "K\u00f6ln"}));
  EXPECT_EQ(read("Stra\u00dfe,y\nK\u00f6ln,1\n", "?categories=Stra\u00dfe").classes,
            (std::map<std::string, std::vector<std::string>>{{"Stra\u00dfe", {"K\u00f6ln"}}}));
}

TEST_F(Csv, CategoriesAreNotNamedLikeTheNumbers) {
  expect_error("x,a\nred,1\n", "?categories=x", "column 'x' can hold neither categories nor the");
  EXPECT_EQ(read("y,a\nred,1\n", "?categories=y&label=y").classes.at("y").size(), 1u);
}

TEST_F(Csv, BadLinesAreSkippedOnRequest) {
  write_plain(path_, "a,b\n1,2\n3\n4,x\n5,6\n");
  const Dataset data =
      open_data("csv:" + path_, "train", {.bad_records = BadRecords::skip}).dataset();
  EXPECT_EQ(values(*data.find("x")), (std::vector<double>{1, 2, 5, 6}));
  EXPECT_EQ(data.skipped.count, 2);
  EXPECT_TRUE(states(data.skipped.errors.front(), "t.csv:3: 1 fields, but the first line has 2"));
  EXPECT_EQ(data.location(1), path_ + ":5");
  write_plain(path_, "a,b\n1\n2\n");
  expect_user_error(
      [&] { open_data("csv:" + path_, "train", {.bad_records = BadRecords::skip}); },
      "data 'csv:" + path_ + "': all 2 records are bad: " + path_ + ":2: 1 fields, but the first");
}

TEST_F(Csv, SamplesAreNamedByTheirLine) {
  const std::string text = "a,y\n1,0\n2,7\n3,1\n";
  const Dataset data = read(text, "?label=y&classes=1");
  EXPECT_EQ(data.location(1), path_ + ":3");
  EXPECT_EQ(data.find_location("y", 7), path_ + ":3");
  EXPECT_EQ(data.find_location("y", 8), "");
  EXPECT_EQ(data.find_location("x", 1), "") << "a float";
  EXPECT_EQ(read("\n" + text, "?label=y&classes=1").find_location("y", 7), path_ + ":4");
  const Dataset gaps = read("a,y\n1,0\n\n\"2\",7\n3,1\n", "?label=y&classes=1");
  EXPECT_EQ(gaps.find_location("y", 7), path_ + ":4");
  EXPECT_EQ(gaps.select(std::vector<int64_t>{2, 1}).location(1), path_ + ":4");
  EXPECT_EQ(open_data("digits?n=3").dataset().location(2), "sample 2 of 'digits?n=3&split=train'");
}

}  // namespace
}  // namespace fluid::csv_test
