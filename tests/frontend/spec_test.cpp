#include "frontend/readers/spec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "frontend/files/npy.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace fluid::spec_test {
namespace {

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.str() == b.str() && std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())) == 0;
}

TEST(DataSpec, OptionsAndRenames) {
  const DataSource source = open_data("digits?n=20&limit=8&shuffle=1&drop_last=0&image=pixels");
  EXPECT_EQ(source.source->samples(), 8);
  EXPECT_NE(source.source->find("pixels"), nullptr);
  EXPECT_EQ(source.source->find("image"), nullptr);
  EXPECT_EQ(source.shuffle, true);
  EXPECT_EQ(source.drop_last, false);
  EXPECT_FALSE(open_data("digits?n=20").shuffle.has_value());
}

TEST(DataSpec, MistakesAreNamed) {
  const auto expect_error = [](const std::string& spec, const std::string& message) {
    expect_user_error([&] { open_data(spec); }, "data '" + spec + "': " + message);
  };
  expect_error("mnst:d", "no kind of data 'mnst' (did you mean 'mnist'?)");
  expect_error("", "no kind of data ''");
  expect_error("database:d", "no kind of data 'database'; there are 'mnist', 'csv', 'pipe'");
  expect_error("mnist", "write mnist:DIR");
  expect_error("digits:d", "write digits");
  expect_error("digits?n=5&splt=test", "no option or column 'splt' (did you mean 'split'?)");
  expect_error("digits?n=5&imag=x", "no option or column 'imag' (did you mean 'image'?)");
  expect_error("digits?n=5&image=label", "two columns are named 'label'");
  expect_error("digits?n", "'n' is not option=value");
  expect_error("digits?=n", "'=n' is not option=value");
  expect_error("digits?n=1&n=2", "option 'n' is given twice");
  expect_error("digits?n=x", "option n=x must be an integer of at least 1");
  expect_error("digits?limit=0", "option limit=0 must be an integer of at least 1");
  expect_error("digits?split=tst", "option split=tst must be one of train, test (did you mean");
  expect_error("digits?shuffle=yes", "option shuffle=yes must be one of 0, 1");
  expect_error("digits?n=1000001", "n is over 1000000");
  expect_error("synthetic-linear?n=1000000001", "n is over 1e9");
}

TEST(DataSpec, AMisspelledOptionIsNamedBesideTheErrorThatItCauses) {
  const TempDir dir;
  const std::string file = dir.file("gap.csv");
  write_plain(file, "a,b\n1,\n");
  expect_user_error([&] { open_data("csv:" + file + "?misssing=mean"); },
                    "no option 'misssing' (did you mean 'missing'?)");
  expect_user_error([&] { open_data("csv:" + file + "?limt=1"); },
                    "unless 'limt' is a column, there is no option 'limt' (did you mean 'limit'?)");
  const std::string other = error_of<UserError>([&] { open_data("csv:" + file + "?colour=c"); });
  EXPECT_EQ(other.find("no option"), std::string::npos) << other;
}

TEST(Digits, DependOnTheSeedAndTheSplitAlone) {
  const auto image = [](const std::string& spec) {
    return *open_data(spec).dataset().find("image");
  };
  EXPECT_TRUE(same_bytes(image("digits?n=50"), image("digits?n=50")));
  EXPECT_FALSE(same_bytes(image("digits?n=50"), image("digits?n=50&seed=1")));
  EXPECT_FALSE(same_bytes(image("digits?n=50"), image("digits?n=50&split=test")));
  EXPECT_TRUE(same_bytes(image("digits?n=50&limit=20"), image("digits?n=20")));
  EXPECT_EQ(open_data("digits?split=test").dataset().samples(), 2000);
}

TEST(Digits, LookLikeHandwriting) {
  const Dataset data = open_data("digits?n=1000").dataset();
  std::vector<int> count(10);
  for (int64_t label : data.find("label")->as<int64_t>()) ++count.at(static_cast<size_t>(label));
  for (int n : count) EXPECT_NEAR(n, 100, 40);
  double mean = 0;
  for (uint8_t pixel : data.find("image")->as<uint8_t>()) mean += pixel;
  mean /= static_cast<double>(data.find("image")->numel());
  EXPECT_NEAR(mean, 33, 10) << "MNIST's mean pixel is 33";
}

TEST(SyntheticLinear, HasItsMoments) {
  const Dataset data = open_data("synthetic-linear?n=100000").dataset();
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

TEST(NpyColumns, AreNamedInTheSpec) {
  TempDir dir;
  write_npy(dir.file("a.npy"), Tensor(f32, {3, 2}));
  write_npy(dir.file("s.npy"), Tensor(f32, {}));
  const std::string a = dir.file("a.npy");
  const Dataset data = open_data("npy:x=" + a + ",y=" + a).dataset();
  EXPECT_EQ(data.samples(), 3);
  EXPECT_EQ(data.columns.size(), 2u);
  expect_user_error([&] { open_data("npy:" + a); }, "write npy:COLUMN=FILE,COLUMN=FILE");
  expect_user_error([&] { open_data("npy:x=" + dir.file("s.npy")); },
                    "a column needs a first dimension that counts samples");
}

}  // namespace
}  // namespace fluid::spec_test
