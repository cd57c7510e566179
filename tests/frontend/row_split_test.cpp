#include <gtest/gtest.h>

#include <algorithm>
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
      EXPECT_EQ(data.row(i), static_cast<int64_t>(rows.back()));
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

TEST_F(RowSplit, MistakesAreNamed) {
  for (const std::string val : {"0", "1", "1.5", "-0.1", "x", "nan", ""}) {
    expect_user_error([&] { open_data(spec(10, "&val=" + val)); },
                      "option val=" + val + " must be a fraction between 0 and 1");
  }
  for (const std::string option : {"split=train", "seed=1"}) {
    expect_user_error([&] { open_data(spec(10, "&" + option)); },
                      "option " + option.substr(0, option.find('=')) +
                          " needs val=0.2, the share of rows held out");
  }
  expect_user_error([&] { open_data(spec(10, "&val=0.2&split=tran")); },
                    "option split=tran must be one of train, val, test (did you mean 'train'?)");
  expect_user_error([&] { open_data(spec(10, "&val=0.2&seed=-1")); },
                    "option seed=-1 must be an integer of at least 0");
  expect_user_error([&] { open_data(spec(1, "&val=0.2")); }, "a single row cannot be split");
  expect_user_error([] { open_data("digits?val=0.2"); }, "no option or column 'val'");
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
