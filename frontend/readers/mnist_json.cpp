#include <cmath>
#include <nlohmann/json.hpp>

#include "frontend/files/gz.h"
#include "frontend/readers/kind.h"
#include "frontend/readers/mnist.h"
#include "ir/error.h"

namespace fluid {
namespace {

constexpr size_t kPixels = 784;
constexpr double kWhite = 255;

/// A SAX parser for MNIST in JSON: a list of the splits train, val and test. Each split is [images,
/// labels]. An image is a list of 784 numbers in [0, 1]. Collects the pixels and labels of one
/// split.
class SplitSax : public nlohmann::json_sax<nlohmann::json> {
 public:
  SplitSax(int split, const std::string& path) : split_(split), path_(path) {}

  std::vector<uint8_t> pixels;
  std::vector<uint8_t> labels;
  int splits = 0;

  bool start_array(size_t) override {
    ++depth_;
    if (depth_ > 4 || (depth_ == 4 && list_ != 1)) fail("the nesting of the lists is wrong");
    if (depth_ == 2) {
      ++splits;
      list_ = 0;
    }
    if (depth_ == 3) ++list_;
    return true;
  }
  bool end_array() override {
    if (depth_ == 2 && list_ != 2) fail("a split is not [images, labels]");
    if (depth_ == 4 && wanted() && pixels.size() % kPixels != 0) {
      fail("an image does not have 784 numbers");
    }
    --depth_;
    return true;
  }
  bool number_float(number_float_t value, const string_t&) override { return number(value); }
  bool number_unsigned(number_unsigned_t value) override {
    return number(static_cast<double>(value));
  }
  bool number_integer(number_integer_t value) override {
    return number(static_cast<double>(value));
  }
  bool start_object(size_t) override { fail("it holds an object"); }
  bool end_object() override { return true; }
  bool key(string_t&) override { return true; }
  bool null() override { fail("it holds null"); }
  bool boolean(bool) override { fail("it holds a bool"); }
  bool string(string_t&) override { fail("it holds a string"); }
  bool binary(binary_t&) override { throw InternalError("binary data in JSON"); }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
    fail("not JSON at byte " + std::to_string(position));
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw UserError("'" + path_ + "' is not MNIST as JSON: " + what);
  }
  bool wanted() const { return splits == split_ + 1; }
  bool number(double value) {
    if (depth_ == 4) {
      if (!(value >= 0 && value <= 1)) fail("a pixel is not in [0, 1]");
      if (wanted()) pixels.push_back(static_cast<uint8_t>(std::lround(value * kWhite)));
    } else if (depth_ == 3 && list_ == 2) {
      if (!(value >= 0 && value <= kWhite) || value != std::floor(value)) {
        fail("a label is not a digit");
      }
      if (wanted()) labels.push_back(static_cast<uint8_t>(value));
    } else {
      fail("the nesting of the lists is wrong");
    }
    return true;
  }

  int split_;
  const std::string& path_;
  int depth_ = 0;
  int list_ = 0;  // number of the list within the split; 1: images, 2: labels
};

Dataset read_mnist_json(const std::string& path, int split) {
  const std::string text = read_gz_or_plain(path);
  SplitSax sax(split, path);
  nlohmann::json::sax_parse(text, &sax);
  if (sax.splits != 3) throw UserError("'" + path + "' is not MNIST as JSON: no three splits");
  Tensor images = Tensor::of<uint8_t>(
      {static_cast<int64_t>(sax.pixels.size() / kPixels), 1, 28, 28}, sax.pixels);
  const Tensor labels = Tensor::of<uint8_t>({static_cast<int64_t>(sax.labels.size())}, sax.labels);
  return digit_dataset(std::move(images), labels, "'" + path + "'");
}

}  // namespace

DataKind mnist_json_kind() {
  return {.name = "mnist-json",
          .usage = "mnist-json:FILE",
          .doc =
              "MNIST as JSON, gzipped or not: [images, labels] for each of train, val and test, "
              "with pixels in [0, 1]; columns image u8[1, 28, 28] and label i64",
          .options = {"split"},
          .open_source = in_memory([](const DataArgs& args) {
            const std::vector<std::string> splits = {"train", "val", "test"};
            const std::string split = args.get_choice("split", "train", splits);
            const auto at = std::find(splits.begin(), splits.end(), split) - splits.begin();
            return read_mnist_json(args.path(), static_cast<int>(at));
          })};
}

}  // namespace fluid
