#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "frontend/files/npy.h"
#include "frontend/readers/reader.h"
#include "frontend/readers/spec.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace fluid::row_split_test {
namespace {

class RowSplit : public ::testing::Test {
 protected:
  /// A csv file whose row i is (i, 2 i), and the SPEC of it with `options`.
  std::string spec(int64_t rows, const std::string& options) const {
    std::string text = "a,y\n";
    for (int64_t i = 0; i < rows; ++i) {
      text += std::to_string(i) + "," + std::to_string(2 * i) + "\n";
    }
    write_plain(dir_.file("t.csv"), text);
    return "csv:" + dir_.file("t.csv") + "?label=y" + options;
  }
  static std::vector<double> rows_of(const std::string& spec, const std::string& split = "train") {
    std::vector<double> rows;
    const Dataset data = open_data(spec, split).dataset();
    const Tensor &x = *data.find("x"), &y = *data.find("y");
    for (int64_t i = 0; i < x.numel(); ++i) {
      rows.push_back(x.at(i));
      EXPECT_EQ(y.at(i), 2 * rows.back());
      EXPECT_EQ(data.source_index(i), static_cast<int64_t>(rows.back()));
    }
    return rows;
  }

  TempDir dir_;
};

TEST_F(RowSplit, PartsAreDisjointAndCoverAllRows) {
  for (const int64_t n : {2, 3, 10, 101}) {
    for (const std::string val : {"0.2", "0.5", "0.001", "0.999"}) {
      SCOPED_TRACE(std::to_string(n) + " rows, val=" + val);
      const std::string file = spec(n, "&val=" + val + "&seed=3");
      const std::vector<double> train = rows_of(file), held = rows_of(file, "test");
      EXPECT_EQ(rows_of(file + "&split=val", "train"), held);
      EXPECT_EQ(rows_of(file + "&split=test", "train"), held);
      EXPECT_EQ(rows_of(file + "&split=train", "test"), train);
      EXPECT_TRUE(std::ranges::is_sorted(train));
      EXPECT_TRUE(std::ranges::is_sorted(held));
      EXPECT_FALSE(train.empty());
      EXPECT_FALSE(held.empty());
      std::vector<double> all = train;
      all.insert(all.end(), held.begin(), held.end());
      std::ranges::sort(all);
      std::vector<double> expected(static_cast<size_t>(n));
      std::iota(expected.begin(), expected.end(), 0);
      EXPECT_EQ(all, expected);
    }
  }
  EXPECT_EQ(rows_of(spec(100, "&val=0.2"), "val").size(), 20u);
}

TEST_F(RowSplit, DependsOnTheSeedAlone) {
  const std::string file = spec(100, "&val=0.3");
  EXPECT_EQ(rows_of(file + "&seed=1", "val"), rows_of(file + "&seed=1", "val"));
  EXPECT_EQ(rows_of(file, "val"), rows_of(file + "&seed=0", "val"));
  EXPECT_NE(rows_of(file + "&seed=1", "val"), rows_of(file + "&seed=2", "val"));
  const std::vector<double> few = rows_of(file + "&limit=5"), all = rows_of(file);
  EXPECT_EQ(few, std::vector<double>(all.begin(), all.begin() + 5));
  EXPECT_EQ(rows_of(spec(100, ""), "test").size(), 100u) << "without val nothing is held out";
}

TEST_F(RowSplit, OfNpyToo) {
  write_npy(dir_.file("a.npy"), Tensor(f32, {10, 3}));
  const std::string npy = "npy:x=" + dir_.file("a.npy") + "?val=0.3";
  EXPECT_EQ(open_data(npy).dataset().samples(), 7);
  EXPECT_EQ(open_data(npy, "test").dataset().find("x")->str(), "f32[3, 3]");
}

/// A file of 2^21 rows, each the number of the row, takes no list of rows.
TEST_F(RowSplit, OfManyRowsKeepsABitOfEachInMemory) {
  constexpr int64_t kRows = int64_t{1} << 21, kHeldOut = kRows / 64;
  Tensor numbers(i64, {kRows});
  std::iota(numbers.as<int64_t>().begin(), numbers.as<int64_t>().end(), 0);
  write_npy(dir_.file("n.npy"), numbers);
  const std::string npy = "npy:x=" + dir_.file("n.npy") + "?memory=0&val=0.015625";
  const SampleSourcePtr train = open_data(npy).source, held_out = open_data(npy, "val").source;
  ASSERT_EQ(train->samples(), kRows - kHeldOut);
  ASSERT_EQ(held_out->samples(), kHeldOut);
  EXPECT_LE(train->resident_bytes(), kRows / 7);
  EXPECT_LE(held_out->resident_bytes(), kRows / 7);
  write_npy(dir_.file("s.npy"), Tensor(u8, {kRows}));
  const std::string by_column =
      "npy:x=" + dir_.file("n.npy") + ",s=" + dir_.file("s.npy") + "?memory=0&split=s:1";
  expect_user_error([&] { open_data(by_column); }, "no row has the value '1' in column 's'");
  const SampleSourcePtr zeros =
      open_data(by_column.substr(0, by_column.size() - 1) + "0", "val").source;
  ASSERT_EQ(zeros->samples(), kRows);
  EXPECT_LE(zeros->resident_bytes(), kRows / 7);
  EXPECT_EQ(common_rows(*train, *held_out), 0);
  EXPECT_EQ(common_rows(*held_out, *held_out), kHeldOut);
  std::vector<int64_t> all;
  int64_t value = 0;
  std::byte* to[] = {reinterpret_cast<std::byte*>(&value)};
  for (const SampleSourcePtr& part : {train, held_out}) {
    for (int64_t i = 0; i < part->samples(); ++i) {
      all.push_back(part->source_index(i));
    }
    part->read(part->samples() - 1, {}, to);
    EXPECT_EQ(value, all.back());
  }
  std::ranges::sort(all);
  for (int64_t i = 0; i < kRows; ++i) ASSERT_EQ(all[static_cast<size_t>(i)], i);
}

/// Rows in any order, some of them twice.
TEST_F(RowSplit, CommonRowsNeedNotAscend) {
  Dataset data;
  data.source = "numbers";
  data.columns = {{"x", Tensor(f32, {10})}};
  const SampleSourcePtr all = make_source(data);
  EXPECT_EQ(common_rows(*select_samples(all, {0, 1, 2}), *select_samples(all, {9, 0})), 1);
  EXPECT_EQ(common_rows(*select_samples(all, {7, 7, 3}), *select_samples(all, {3, 7})), 3);
  EXPECT_EQ(common_rows(*select_samples(all, {1, 3}), *select_samples(all, {2, 4})), 0);
  const std::vector<int64_t> left_out = {0, 4, 9};
  EXPECT_EQ(select_rows(all, all_rows_except(10, left_out))->samples(), 7);
}

TEST_F(RowSplit, ASetOfRowsFindsEachByItsIndex) {
  for (const int64_t rows : {0, 1, 63, 64, 65, 511, 512, 513, 5000}) {
    for (const int64_t step : {1, 2, 7, 64, 600}) {
      std::vector<int64_t> expected, found;
      for (int64_t row = step - 1; row < rows; row += step) expected.push_back(row);
      const RowSet set(rows, [&](int64_t row) { return row % step == step - 1; });
      for (int64_t i = 0; i < set.size(); ++i) found.push_back(set[i]);
      EXPECT_EQ(found, expected) << rows << " " << step;
      const RowSet reversed(rows, std::ssize(expected), [&](int64_t i) {
        return expected[expected.size() - 1 - static_cast<size_t>(i)];
      });
      const RowSet others = set.complement();
      EXPECT_EQ(others.size(), rows - set.size());
      for (int64_t i = 0; i < set.size(); ++i) EXPECT_EQ(reversed[i], set[i]);
      for (int64_t i = 0; i < others.size(); ++i) EXPECT_FALSE(set.contains(others[i]));
      for (int64_t row = 0; row < rows; ++row) {
        EXPECT_EQ(set.contains(row), row % step == step - 1);
        EXPECT_NE(set.contains(row), others.contains(row));
      }
      EXPECT_FALSE(set.contains(rows) || others.contains(rows));
      EXPECT_EQ(others.bytes(), set.bytes());
    }
  }
}

TEST_F(RowSplit, MistakesAreNamed) {
  for (const std::string val : {"0", "1", "1.5", "-0.1", "x", "nan", ""}) {
    expect_user_error([&] { open_data(spec(10, "&val=" + val)); },
                      "option val=" + val + " must be a fraction between 0 and 1");
  }
  for (const std::string option : {"split=train", "seed=1"}) {
    expect_user_error([&] { open_data(spec(10, "&" + option)); },
                      "option " + option.substr(0, option.find("=1")) +
                          " needs val=0.2, the share of rows held out");
  }
  expect_user_error([&] { open_data(spec(10, "&val=0.2&split=tran")); },
                    "options val and split=tran both split the rows (did you mean 'train'?)");
  expect_user_error([&] { open_data(spec(10, "&val=0.2&split=a")); },
                    "options val and split=a both split the rows: give one of them");
  expect_user_error([&] { open_data(spec(10, "&val=0.2"), "vall"); },
                    "split 'vall' must be train, val or test (did you mean 'val'?)");
  expect_user_error([&] { open_data(spec(10, "&val=0.2&seed=-1")); },
                    "option seed=-1 must be an integer of at least 0");
  expect_user_error([&] { open_data(spec(1, "&val=0.2")); }, "a single row cannot be split");
  expect_user_error([] { open_data("digits?val=0.2"); }, "no option or column 'val'");
}

/// The column x of the rows that a SPEC reads.
std::vector<double> xs_of(const std::string& spec, const std::string& split) {
  const Dataset data = open_data(spec, split).dataset();
  EXPECT_EQ(data.find("fold"), nullptr) << "the column is no feature";
  std::vector<double> xs;
  const Tensor& x = *data.find("x");
  for (int64_t i = 0; i < x.numel(); ++i) xs.push_back(x.at(i));
  return xs;
}

class ColumnSplit : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    write_plain(dir_.file(name), text);
    return dir_.file(name);
  }
  /// A csv file with a column fold, and the SPEC of it.
  std::string csv(const std::vector<std::string>& folds, const std::string& options) const {
    std::string text = "a,fold,y\n";
    for (size_t i = 0; i < folds.size(); ++i) {
      text += std::to_string(i) + "," + folds[i] + "," + std::to_string(2 * i) + "\n";
    }
    return "csv:" + write("t.csv", text) + "?label=y&" + options;
  }
  using Rows = std::vector<double>;

  TempDir dir_;
};

TEST_F(ColumnSplit, NamesOfTheSplitsSelectRows) {
  const std::string spec =
      csv({"train", "Validation", "test", "TRAIN", "val", "dev", "testing"}, "split=fold");
  EXPECT_EQ(xs_of(spec, "train"), (Rows{0, 3}));
  EXPECT_EQ(xs_of(spec, "val"), (Rows{1, 4, 5}));
  EXPECT_EQ(xs_of(spec, "test"), (Rows{2, 6}));
  const DataSource data = open_data(spec, "test");
  EXPECT_EQ(data.source->location(1), dir_.file("t.csv") + ":8");
  EXPECT_EQ(data.source->source_index(1), 6);
  ASSERT_TRUE(data.split_counts);
  EXPECT_EQ(data.split_counts->train, 2);
  EXPECT_EQ(data.split_counts->validation, 3);
  EXPECT_EQ(data.split_counts->test, 2);
  EXPECT_EQ(xs_of(spec + "&limit=1", "val"), Rows{1});
  EXPECT_FALSE(open_data(csv({"1"}, "drop=fold"), "train").split_counts);
}

TEST_F(ColumnSplit, HeldOutRowsAreThoseThatThereAre) {
  EXPECT_EQ(xs_of(csv({"train", "test"}, "split=fold"), "val"), Rows{1});
  EXPECT_EQ(xs_of(csv({"train", "val"}, "split=fold"), "test"), Rows{1});
  expect_user_error([&] { open_data(csv({"train"}, "split=fold"), "val"); },
                    "option split=fold leaves no row for validation and test");
  expect_user_error([&] { open_data(csv({"val"}, "split=fold")); },
                    "option split=fold leaves no row for training");
}

TEST_F(ColumnSplit, AValueSelectsTheValidationRows) {
  for (const std::string value : {"1", "1.0", "true", "True"}) {
    const std::string spec = csv({"0", "1", "1", "0"}, "split=fold:" + value);
    EXPECT_EQ(xs_of(spec, "train"), (Rows{0, 3})) << value;
    EXPECT_EQ(xs_of(spec, "val"), (Rows{1, 2})) << value;
    EXPECT_EQ(xs_of(spec, "test"), (Rows{1, 2})) << value;
  }
  EXPECT_EQ(xs_of(csv({"a", "b", "A"}, "split=fold:A"), "val"), Rows{2}) << "texts as they are";
  EXPECT_EQ(xs_of(csv({"train", "val", "test"}, "split=fold:test"), "train"), (Rows{0, 1}));
  write_plain(dir_.file("colon.csv"), "x:1,a\ntrain,5\nval,6\n");
  EXPECT_EQ(xs_of("csv:" + dir_.file("colon.csv") + "?split=x:1", "val"), Rows{6});
}

TEST_F(ColumnSplit, OfOtherKindsToo) {
  const std::string lines = write("t.jsonl",
                                  "{\"x\": 1, \"fold\": \"train\", \"n\": 7}\n"
                                  "{\"x\": 2, \"fold\": \"test\", \"n\": 8}\n");
  EXPECT_EQ(xs_of("jsonl:" + lines + "?split=fold", "val"), Rows{2});
  EXPECT_EQ(xs_of("jsonl:" + lines + "?split=fold&columns=x", "train"), Rows{1});
  EXPECT_EQ(xs_of("jsonl:" + lines + "?split=n:7&columns=x", "val"), Rows{1});
  const std::vector<int64_t> folds = {0, 1, 2, 1};
  const std::vector<double> held = {0, 0.5, 1, 0.5};
  write_npy(dir_.file("x.npy"), Tensor::of<float>({4}, std::vector<float>{5, 6, 7, 8}));
  write_npy(dir_.file("fold.npy"), Tensor::of<int64_t>({4}, folds));
  write_npy(dir_.file("held.npy"), Tensor::of<double>({4, 1}, held));
  write_npy(dir_.file("wide.npy"), Tensor(f32, {4, 2}));
  for (const std::string memory : {"0", "1"}) {
    const std::string npy = "npy:x=" + dir_.file("x.npy") + ",fold=" + dir_.file("fold.npy") +
                            "?memory=" + memory + "&split=fold:1";
    EXPECT_EQ(open_data(npy, "train").source->samples(), 2);
    EXPECT_EQ(open_data(npy, "val").source->columns().size(), 1u);
    EXPECT_EQ(open_data(npy, "val").source->source_index(1), 3);
  }
  const std::string half = "npy:x=" + dir_.file("x.npy") + ",h=" + dir_.file("held.npy");
  EXPECT_EQ(xs_of(half + "?split=h:0.5", "val"), (Rows{6, 8}));
  write_plain(dir_.file("tenths.jsonl"),
              "{\"x\": 1, \"t\": 0.1}\n{\"x\": 2, \"t\": 0.2}\n{\"x\": 3, \"t\": 0.1}\n");
  const std::string tenths = "jsonl:" + dir_.file("tenths.jsonl") + "?split=t:0.1";
  EXPECT_EQ(open_data(tenths, "val").source->samples(), 2) << "an f32 has no exact 0.1";
  expect_user_error(
      [&] {
        open_data("npy:x=" + dir_.file("x.npy") + ",w=" + dir_.file("wide.npy") + "?split=w:0");
      },
      "column 'w' is f32[2]: a column to split by has one value a row");
}

TEST_F(ColumnSplit, MistakesAreNamed) {
  const auto expect_error = [&](const std::vector<std::string>& folds, const std::string& options,
                                const std::string& message) {
    expect_user_error([&] { open_data(csv(folds, options)); }, message);
  };
  expect_error({"train"}, "split=fodl", "option split=fodl: no column 'fodl' (did you mean 'fold'");
  expect_error({"train"}, "split=vla", "option split=vla: no column 'vla' (did you mean 'val'?)");
  expect_error({"train", "3"}, "split=fold",
               dir_.file("t.csv") +
                   ":3: column 'fold' holds '3', which is none of train, val and "
                   "test; split=fold:3 takes the rows with this value for validation");
  expect_error({"1", "2"}, "split=fold:3", "no row has the value '3' in column 'fold'");
  expect_error({"red", "blue"}, "split=fold:bleu",
               "no row has the value 'bleu' in column 'fold' (did you mean 'blue'?)");
  expect_error({"train"}, "split=fold&seed=1",
               "option seed needs val=0.2, the share of rows held out");
  expect_error({"train"}, "split=fold&columns=a,fold",
               "column 'fold' splits the rows: columns names it");
  write_plain(dir_.file("x.csv"), "x,a\ntrain,1\n");
  expect_user_error([&] { open_data("csv:" + dir_.file("x.csv") + "?split=x"); },
                    "column 'x' can hold neither categories nor the split");
}

TEST_F(ColumnSplit, NumbersAreNormalizedByTheTrainingRows) {
  const std::string spec = csv({"train", "val", "train", "test"}, "split=fold&normalize=1");
  EXPECT_EQ(xs_of(spec, "train"), (Rows{-1, 1}));
  EXPECT_EQ(xs_of(spec, "val"), Rows{0});
  EXPECT_EQ(xs_of(spec, "test"), Rows{2});
  const std::string by_value = csv({"0", "1", "0", "0"}, "split=fold:1&normalize=1");
  EXPECT_NEAR(xs_of(by_value, "val")[0], (1 - 5.0 / 3) / std::sqrt(14.0 / 9), 1e-6);
}

TEST_F(RowSplit, AColumnWithoutSamplesIsNamed) {
  Dataset data;
  data.columns.emplace_back("s", Tensor(f32, {}));
  EXPECT_EQ(data.samples(), 0);
  expect_user_error([&] { Reader(data, {}); },
                    "column 's' is f32[]: a column needs a first dimension that counts samples");
  data.columns.emplace(data.columns.begin(), "x", Tensor(f32, {3}));
  expect_user_error([&] { Reader(data, {}); }, "column 's' is f32[]");
}

TEST(SpecGuess, APathSuggestsItsKind) {
  TempDir dir;
  const auto expect_error = [](const std::string& spec, const std::string& meant) {
    expect_user_error([&] { open_data(spec); }, "(did you mean '" + meant + "'?)");
  };
  expect_error("rows.csv", "csv:rows.csv?label=COLUMN");
  expect_error("ROWS.CSV", "csv:ROWS.CSV?label=COLUMN");
  expect_error("d/rows.csv.gz", "csv:d/rows.csv.gz?label=COLUMN");
  expect_error("rows.csv?label=y&classes=1", "csv:rows.csv?label=y&classes=1");
  expect_error("a:b.csv", "csv:a:b.csv?label=COLUMN");
  expect_error("cvs:rows.csv", "csv");
  expect_error("x.npy", "npy:COLUMN=x.npy");
  expect_error("x.npy?limit=3", "npy:COLUMN=x.npy?limit=3");
  expect_error("mnist.json.gz", "mnist-json:mnist.json.gz");
  const std::string mnist = dir.file("m"), cifar = dir.file("c"), none = dir.file("n");
  for (const std::string& folder : {mnist, cifar, none}) std::filesystem::create_directory(folder);
  write_plain(mnist + "/t10k-images-idx3-ubyte.gz", "");
  write_plain(cifar + "/data_batch_1.bin", "");
  expect_error(mnist, "mnist:" + mnist);
  expect_error(cifar + "?split=test", "cifar10:" + cifar + "?split=test");
  EXPECT_EQ(error_of<UserError>([&] { open_data(none); }).find("did you mean"), std::string::npos);
}

}  // namespace
}  // namespace fluid::row_split_test
