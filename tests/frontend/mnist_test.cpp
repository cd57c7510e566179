#include "frontend/readers/mnist.h"

#include <gtest/gtest.h>

#include "frontend/files/gz.h"
#include "frontend/readers/idx.h"
#include "frontend/readers/spec.h"
#include "ir/atomic_file.h"
#include "tests/support/errors.h"
#include "tests/support/file_bytes.h"
#include "tests/support/mutate.h"
#include "tests/support/temp_dir.h"

namespace fluid::mnist_test {
namespace {

class MnistFiles : public ::testing::Test {
 protected:
  void put(const std::string& image_bytes, const std::string& label_bytes) {
    write_plain(dir_.file("train-images-idx3-ubyte"), image_bytes);
    write_plain(dir_.file("train-labels-idx1-ubyte"), label_bytes);
  }
  void expect_error(const std::string& image_bytes, const std::string& label_bytes,
                    const std::string& message) {
    put(image_bytes, label_bytes);
    expect_user_error([&] { read_mnist(dir_.path()); }, message);
  }
  TempDir dir_;
};

TEST_F(MnistFiles, ReadsPlainAndGzippedFiles) {
  put(idx_images(3), idx_labels(std::string("\0\5\11", 3)));
  write_gz(dir_.file("t10k-images.idx3-ubyte.gz"), idx_images(2));
  write_gz(dir_.file("t10k-labels.idx1-ubyte.gz"), idx_labels("\1\2"));
  const Dataset train = read_mnist(dir_.path());
  EXPECT_EQ(train.find("image")->str(), "u8[3, 1, 28, 28]");
  EXPECT_EQ(train.find("image")->at(784), 7.0);
  EXPECT_EQ(train.find("label")->str(), "i64[3]");
  EXPECT_EQ(train.find("label")->at(2), 9.0);
  EXPECT_EQ(read_mnist(dir_.path(), "test").samples(), 2);
  int64_t seen = 0;
  for (const Batch& batch : Mnist(dir_.path(), {.batch = 2})) seen += batch.size;
  EXPECT_EQ(seen, 3);
}

TEST_F(MnistFiles, MistakesAreNamed) {
  expect_user_error([] { read_mnist("/no/such"); }, "MNIST: '/no/such' is not a directory");
  expect_user_error([&] { read_mnist(dir_.path()); }, "has no train-images-idx3-ubyte");
  expect_error(idx_labels("\1"), idx_labels("\1"),
               "is not an idx file of bytes with 3 extents: its magic number is 2049, not 2051");
  expect_error(idx_images(1), idx_images(1), "its magic number is 2051, not 2049");
  expect_error(idx_images(2, 27), idx_labels("\1\2"), "has images that are not 28x28");
  expect_error(idx_images(2), idx_labels("\1"), "has 2 images but 1 labels");
  expect_error(idx_images(2), idx_labels("\1\12"), "label 10 of sample 1 is not a digit");
  expect_error(idx_images(2) + "x", idx_labels("\1\2"),
               "holds 1569 bytes, but its header says 1568");
  expect_error("abc", idx_labels("\1"), "is cut off in its header");
  expect_error(big_endian(0x803) + std::string(12, '\xff'), idx_labels("\1"),
               "has extents whose product overflows");
}

TEST_F(MnistFiles, DamagedFilesAreRejected) {
  const std::string path = dir_.file("x");
  survives_damage(idx_labels("\1\2\3"), [&](const std::string& bytes) {
    write_plain(path, bytes);
    read_idx(path, 1);
  });
  write_gz(path, idx_labels("\1\2\3"));
  const std::string packed = read_file(path);
  expect_user_error(
      [&] {
        write_plain(path, packed.substr(0, packed.size() - 3));
        read_idx(path, 1);
      },
      "the gzip data is cut off");
  std::string wrong_sum = packed;
  wrong_sum[packed.size() - 6] ^= 1;
  write_plain(path, wrong_sum);
  expect_user_error([&] { read_idx(path, 1); }, "damaged gzip data");
  write_plain(path, "too long");
  expect_user_error([&] { read_gz_or_plain(path, 7); }, "holds more than 7 bytes");
  survives_damage(packed, [&](const std::string& bytes) {
    write_plain(path, bytes);
    read_idx(path, 1);
  });
}

std::string json_image(const std::string& pixel) {
  std::string list = "[" + pixel;
  for (int i = 1; i < 784; ++i) list += ",0";
  return list + "]";
}

std::string json_file(const std::string& train) {
  const std::string other = "[[" + json_image("1.0") + "],[3]]";
  return "[" + train + "," + other + "," + other + "]";
}

TEST_F(MnistFiles, ReadsJson) {
  const std::string path = dir_.file("m.json.gz");
  write_gz(path, json_file("[[" + json_image("0.50196") + "," + json_image("0") + "],[7,2]]"));
  const Dataset train = open_data("mnist-json:" + path).dataset();
  EXPECT_EQ(train.find("image")->str(), "u8[2, 1, 28, 28]");
  EXPECT_EQ(train.find("image")->at(0), 128.0);
  EXPECT_EQ(train.find("label")->at(1), 2.0);
  const Dataset val = open_data("mnist-json:" + path + "?split=val").dataset();
  EXPECT_EQ(val.samples(), 1);
  EXPECT_EQ(val.find("image")->at(0), 255.0);
}

TEST_F(MnistFiles, JsonMistakesAreNamed) {
  const std::string path = dir_.file("m.json");
  const auto expect_json_error = [&](const std::string& text, const std::string& message) {
    write_plain(path, text);
    expect_user_error([&] { open_data("mnist-json:" + path); }, message);
  };
  const std::string one = json_image("0");
  expect_json_error("", "not JSON at byte");
  expect_json_error("[[[", "not JSON at byte");
  expect_json_error("[]", "is not MNIST as JSON: no three splits");
  expect_json_error("{}", "it holds an object");
  expect_json_error("[null]", "it holds null");
  expect_json_error("[true]", "it holds a bool");
  expect_json_error("[\"x\"]", "it holds a string");
  expect_json_error("5", "the nesting of the lists is wrong");
  expect_json_error("[[[[[0]]]]]", "the nesting of the lists is wrong");
  expect_json_error("[[[]]]", "a split is not [images, labels]");
  expect_json_error(json_file("[[[0, 1]],[3]]"), "an image does not have 784 numbers");
  expect_json_error(json_file("[[" + json_image("1.5") + "],[3]]"), "a pixel is not in [0, 1]");
  expect_json_error(json_file("[[" + json_image("-1") + "],[3]]"), "a pixel is not in [0, 1]");
  expect_json_error(json_file("[[" + one + "],[3.5]]"), "a label is not a digit");
  expect_json_error(json_file("[[" + one + "],[11]]"), "label 11 of sample 0 is not a digit");
  expect_json_error(json_file("[[" + one + "],[1, 2]]"), "has 1 images but 2 labels");
}

}  // namespace
}  // namespace fluid::mnist_test
