#include "frontend/readers/spec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "frontend/files/npy.h"
#include "ir/atomic_file.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace fluid {
namespace {

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.str() == b.str() && std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())) == 0;
}

TEST(DataSpec, OptionsAndRenames) {
  const DataSource source = open_data("digits?n=20&limit=8&shuffle=1&drop_last=0&image=pixels");
  EXPECT_EQ(source.dataset.samples(), 8);
  EXPECT_NE(source.dataset.find("pixels"), nullptr);
  EXPECT_EQ(source.dataset.find("image"), nullptr);
  EXPECT_EQ(source.shuffle, true);
  EXPECT_EQ(source.drop_last, false);
  EXPECT_FALSE(open_data("digits?n=20").shuffle.has_value());
}

TEST(DataSpec, MistakesAreNamed) {
  const auto refuse = [](const std::string& spec, const std::string& message) {
    expect_user_error([&] { open_data(spec); }, "data '" + spec + "': " + message);
  };
  refuse("mnst:d", "no kind of data 'mnst' (did you mean 'mnist'?)");
  refuse("", "no kind of data ''");
  refuse("mnist", "write mnist:DIR");
  refuse("digits:d", "write digits");
  refuse("digits?n=5&splt=test", "no option or column 'splt' (did you mean 'split'?)");
  refuse("digits?n=5&imag=x", "no option or column 'imag' (did you mean 'image'?)");
  refuse("digits?n=5&image=label", "two columns are named 'label'");
  refuse("digits?n", "'n' is not option=value");
  refuse("digits?=n", "'=n' is not option=value");
  refuse("digits?n=1&n=2", "option 'n' is given twice");
  refuse("digits?n=x", "option n=x must be an integer of at least 1");
  refuse("digits?limit=0", "option limit=0 must be an integer of at least 1");
  refuse("digits?split=tst", "option split=tst must be one of train, test (did you mean");
  refuse("digits?shuffle=yes", "option shuffle=yes must be one of 0, 1");
  refuse("digits?n=1000001", "n is over 1000000");
  refuse("synthetic-linear?n=1000000001", "n is over 1e9");
}

TEST(Digits, DependOnTheSeedAndTheSplitAlone) {
  const auto image = [](const std::string& spec) { return *open_data(spec).dataset.find("image"); };
  EXPECT_TRUE(same_bytes(image("digits?n=50"), image("digits?n=50")));
  EXPECT_FALSE(same_bytes(image("digits?n=50"), image("digits?n=50&seed=1")));
  EXPECT_FALSE(same_bytes(image("digits?n=50"), image("digits?n=50&split=test")));
  EXPECT_TRUE(same_bytes(image("digits?n=50&limit=20"), image("digits?n=20")));
  EXPECT_EQ(open_data("digits?split=test").dataset.samples(), 2000);
}

TEST(Digits, LookLikeHandwriting) {
  const Dataset data = open_data("digits?n=1000").dataset;
  std::vector<int> count(10);
  for (int64_t label : data.find("label")->as<int64_t>()) ++count.at(static_cast<size_t>(label));
  for (int n : count) EXPECT_NEAR(n, 100, 40);
  double mean = 0;
  for (uint8_t pixel : data.find("image")->as<uint8_t>()) mean += pixel;
  mean /= static_cast<double>(data.find("image")->numel());
  EXPECT_NEAR(mean, 33, 10) << "MNIST's mean pixel is 33";
}

TEST(SyntheticLinear, HasItsMoments) {
  const Dataset data = open_data("synthetic-linear?n=100000").dataset;
  const auto x = data.find("x")->as<float>();
  const auto y = data.find("y")->as<float>();
  EXPECT_EQ(data.find("x")->str(), "f32[100000, 2]");
  EXPECT_EQ(data.find("y")->str(), "f32[100000, 1]");
  double sum = 0, square = 0, moment = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    const double noise = y[i] - (2 * x[2 * i] - 3 * x[2 * i + 1] + 10);
    sum += noise;
    square += noise * noise;
    moment += x[2 * i] * x[2 * i];
    ASSERT_LE(std::abs(x[2 * i]), 5);
  }
  const auto n = static_cast<double>(y.size());
  EXPECT_NEAR(sum / n, 0, 0.03);
  EXPECT_NEAR(square / n, 4, 0.1);
  EXPECT_NEAR(moment / n, 25.0 / 3, 0.1);
}

TEST(Csv, SplitsFeaturesFromTheLabel) {
  TempDir dir;
  const std::string path = dir.file("t.csv");
  write_file_atomically(path, "a,\"b\",c\r\n1,2,3\r\n\r\n4, 5.5,-6e1\n");
  const Dataset data = open_data("csv:" + path + "?label=b").dataset;
  EXPECT_EQ(data.find("x")->str(), "f32[2, 2]");
  EXPECT_EQ(data.find("x")->at(3), -60.0);
  EXPECT_EQ(data.find("y")->str(), "f32[2, 1]");
  EXPECT_EQ(data.find("y")->at(1), 5.5);
  const Dataset classes = open_data("csv:" + path + "?label=a&classes=1").dataset;
  EXPECT_EQ(classes.find("y")->str(), "i64[2]");
}

TEST(Csv, MistakesAreNamed) {
  TempDir dir;
  const std::string path = dir.file("t.csv");
  const auto refuse = [&](const std::string& text, const std::string& options,
                          const std::string& message) {
    write_file_atomically(path, text);
    expect_user_error([&] { open_data("csv:" + path + options); }, message);
  };
  refuse("a,b\n1,2\n", "", "say which column is the label: csv:FILE?label=COLUMN");
  refuse("alpha,b\n1,2\n", "?label=alpa", "no column 'alpa' (did you mean 'alpha'?)");
  refuse("a,b,b\n1,2,3\n", "?label=b", "t.csv:1: two columns are named 'b'");
  for (const std::string empty : {"", "\n\r\n"}) {
    refuse(empty, "?label=y", "t.csv is empty: no line names the columns");
  }
  refuse("a,b\n1,2,3\n", "?label=a", "t.csv:2: 3 fields, but the first line has 2");
  refuse("a,b\n1,x\n", "?label=a", "t.csv:2: 'x' is not a finite number");
  refuse("a,b\n1,nan\n", "?label=a", "t.csv:2: 'nan' is not a finite number");
  refuse("a,b\n1,2\n1,-1e39\n", "?label=a",
         "t.csv:3: '-1e39' of column 'b' is beyond the range of f32");
  refuse("a,b\n1.5,2\n", "?label=a&classes=1", "of sample 0 is not a class number");
}

TEST(NpyColumns, AreNamedInTheSpec) {
  TempDir dir;
  write_npy(dir.file("a.npy"), Tensor(f32, {3, 2}));
  write_npy(dir.file("s.npy"), Tensor(f32, {}));
  const std::string a = dir.file("a.npy");
  const Dataset data = open_data("npy:x=" + a + ",y=" + a).dataset;
  EXPECT_EQ(data.samples(), 3);
  EXPECT_EQ(data.columns.size(), 2u);
  expect_user_error([&] { open_data("npy:" + a); }, "write npy:COLUMN=FILE,COLUMN=FILE");
  expect_user_error([&] { open_data("npy:x=" + dir.file("s.npy")); },
                    "a column needs a first dimension that counts samples");
}

}  // namespace
}  // namespace fluid
