#include "frontend/readers/mnist.h"

#include <algorithm>
#include <filesystem>

#include "frontend/readers/idx.h"
#include "frontend/readers/kind.h"
#include "ir/error.h"

namespace fluid {
namespace {

constexpr int kMnistClasses = 10;
constexpr int64_t kMnistSide = 28;

/// Returns the path of an MNIST file. Tries all names under which MNIST is distributed.
std::string find_file(const std::string& directory, const std::string& stem, int rank) {
  for (const char* separator : {"-", "."}) {
    for (const char* ending : {"", ".gz"}) {
      const std::string path =
          directory + "/" + stem + separator + "idx" + std::to_string(rank) + "-ubyte" + ending;
      if (std::filesystem::exists(path)) return path;
    }
  }
  const bool there = std::filesystem::is_directory(directory);
  throw UserError(there ? "MNIST: '" + directory + "' has no " + stem + "-idx" +
                              std::to_string(rank) + "-ubyte, with or without .gz"
                        : "MNIST: '" + directory + "' is not a directory");
}

}  // namespace

Dataset digit_dataset(Tensor images, const Tensor& labels, const std::string& source_name) {
  const int64_t n = images.shape().at(0);
  if (n != labels.numel()) {
    throw UserError(source_name + " has " + std::to_string(n) + " images but " +
                    std::to_string(labels.numel()) + " labels");
  }
  const std::span<const uint8_t> raw = labels.as<uint8_t>();
  const auto bad =
      std::find_if(raw.begin(), raw.end(), [](uint8_t l) { return l >= kMnistClasses; });
  if (bad != raw.end()) {
    throw UserError(source_name + ": label " + std::to_string(*bad) + " of sample " +
                    std::to_string(bad - raw.begin()) + " is not a digit");
  }
  Dataset data;
  const auto owner = std::make_shared<Tensor>(std::move(images));
  data.columns.emplace_back(
      "image", Tensor::view(DType::u8, {n, 1, kMnistSide, kMnistSide}, owner->data(), owner));
  data.columns.emplace_back("label", labels.cast(DType::i64));
  return data;
}

Dataset read_mnist(const std::string& directory, const std::string& split) {
  const std::string stem = split == "test" ? "t10k" : "train";
  const std::string path = find_file(directory, stem + "-images", 3);
  Tensor images = read_idx(path, 3);
  if (images.shape()[1] != kMnistSide || images.shape()[2] != kMnistSide) {
    throw UserError("'" + path + "' has images that are not 28x28");
  }
  const Tensor labels = read_idx(find_file(directory, stem + "-labels", 1), 1);
  return digit_dataset(std::move(images), labels, "'" + directory + "'");
}

DataKind mnist_kind() {
  return {
      .name = "mnist",
      .usage = "mnist:DIR",
      .doc = "the original MNIST files, gzipped or not: columns image u8[1, 28, 28] and label i64",
      .splits_rows = true,
      .options = {"split"},
      .open_source = in_memory([](const DataArgs& args) {
        return read_mnist(args.path(), args.get_choice("split", "train", {"train", "test"}));
      })};
}

}  // namespace fluid
