#include "frontend/readers/spec_guess.h"

#include <filesystem>

#include "frontend/images/decode.h"
#include "ir/text.h"

namespace fluid {
namespace {

namespace fs = std::filesystem;

bool is_mnist(const std::string& name) {
  return (name.starts_with("train-images") || name.starts_with("t10k-images")) &&
         name.find("ubyte") != std::string::npos;
}

bool is_cifar10(const std::string& name) {
  return (name.starts_with("data_batch_") || name.starts_with("test_batch")) &&
         name.find(".bin") != std::string::npos;
}

bool holds_image(const fs::path& directory) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (is_image_path(entry.path().string())) return true;
  }
  return false;
}

std::string spec_of_directory(const std::string& path) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string();
    if (is_mnist(name)) return "mnist:" + path;
    if (is_cifar10(name)) return "cifar10:" + path;
    if (name.ends_with(".tar")) return "tar:" + path;
    if (entry.is_directory(error) && holds_image(entry.path())) return "folder:" + path;
  }
  return "";
}

}  // namespace

std::string guess_spec(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return spec_of_directory(path);
  std::string name = ir::lowercase(path);
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  if (name.ends_with(".csv")) return "csv:" + path + "?label=COLUMN";
  if (name.ends_with(".npz")) return "npz:" + path;
  if (name.ends_with(".tar")) return "tar:" + path;
  if (name.ends_with(".safetensors")) return "safetensors:" + path;
  if (name.ends_with(".jsonl")) return "jsonl:" + path;
  if (name.ends_with(".npy")) return "npy:COLUMN=" + path;
  if (name.ends_with(".txt")) return "text:" + path;
  if (name.ends_with(".json")) return "mnist-json:" + path;
  return "";
}

}  // namespace fluid
