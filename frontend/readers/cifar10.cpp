#include "frontend/readers/cifar10.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <map>

#include "frontend/files/gz.h"
#include "frontend/readers/kind.h"
#include "ir/error.h"

namespace fluid {
namespace {

/// Names of the classes, by label (batches.meta.txt of the binary version).
constexpr std::array kCifarClasses = {"airplane", "automobile", "bird",  "cat",  "deer",
                                      "dog",      "frog",       "horse", "ship", "truck"};
constexpr int64_t kCifarSide = 32, kImage = 3 * kCifarSide * kCifarSide, kRecord = 1 + kImage;

/// Returns a map from the file names of a split, without ".gz", to the paths of the files. A plain
/// file takes precedence over a gzipped one.
std::map<std::string, std::string> find_files(const std::string& directory, bool test) {
  std::error_code error;
  const std::filesystem::directory_iterator entries(directory, error);
  if (error) throw UserError("CIFAR-10: '" + directory + "' is not a directory that can be read");
  std::map<std::string, std::string> files;
  for (const auto& entry : entries) {
    std::string name = entry.path().filename().string();
    const bool packed = name.ends_with(".gz");
    if (packed) name.resize(name.size() - 3);
    const bool wanted =
        test ? name == "test_batch.bin" : name.starts_with("data_batch_") && name.ends_with(".bin");
    if (wanted && (!packed || !files.contains(name))) files[name] = entry.path().string();
  }
  if (files.empty()) {
    throw UserError("CIFAR-10: '" + directory + "' has no " +
                    (test ? "test_batch.bin" : "data_batch_1.bin to data_batch_5.bin") +
                    ", with or without .gz");
  }
  return files;
}

std::string read_records(const std::string& path) {
  std::string bytes = read_gz_or_plain(path);
  const auto size = static_cast<int64_t>(bytes.size());
  if (size == 0 || size % kRecord != 0) {
    throw UserError("'" + path + "' holds " + std::to_string(size) + " bytes, not records of " +
                    std::to_string(kRecord) + ": CIFAR-10's binary version is needed");
  }
  for (int64_t i = 0; i < size / kRecord; ++i) {
    const int label = static_cast<uint8_t>(bytes[static_cast<size_t>(i * kRecord)]);
    if (label >= std::ssize(kCifarClasses)) {
      throw UserError("'" + path + "': label " + std::to_string(label) + " of record " +
                      std::to_string(i) + " is not below 10");
    }
  }
  return bytes;
}

}  // namespace

Dataset read_cifar10(const std::string& directory, const std::string& split) {
  std::vector<std::string> files;
  int64_t n = 0;
  for (const auto& [name, path] : find_files(directory, split == "test")) {
    files.push_back(read_records(path));
    n += static_cast<int64_t>(files.back().size()) / kRecord;
  }
  Tensor images(DType::u8, {n, 3, kCifarSide, kCifarSide}), labels(DType::i64, {n});
  uint8_t* image = images.as<uint8_t>().data();
  int64_t* label = labels.as<int64_t>().data();
  for (const std::string& bytes : files) {
    for (size_t at = 0; at < bytes.size(); at += kRecord, image += kImage) {
      *label++ = static_cast<uint8_t>(bytes[at]);
      std::memcpy(image, bytes.data() + at + 1, kImage);
    }
  }
  Dataset data;
  data.columns.emplace_back("image", std::move(images));
  data.columns.emplace_back("label", std::move(labels));
  data.classes["label"] = {kCifarClasses.begin(), kCifarClasses.end()};
  return data;
}

DataKind cifar10_kind() {
  return {.name = "cifar10",
          .usage = "cifar10:DIR",
          .doc =
              "the binary version of CIFAR-10, gzipped or not: columns image u8[3, 32, 32] and "
              "label i64",
          .splits_rows = true,
          .options = {"split"},
          .open_source = in_memory([](const DataArgs& args) {
            return read_cifar10(args.path(), args.get_choice("split", "train", {"train", "test"}));
          })};
}

}  // namespace fluid
