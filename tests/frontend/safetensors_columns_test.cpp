// The kind of data "safetensors".

#include <gtest/gtest.h>

#include "frontend/files/safetensors.h"
#include "frontend/readers/reader.h"
#include "frontend/readers/spec.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace fluid::safetensors_columns_test {
namespace {

Tensor counting(std::vector<int64_t> shape) {
  Tensor tensor(DType::f32, std::move(shape));
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    tensor.as<float>()[static_cast<size_t>(i)] = static_cast<float>(i);
  }
  return tensor;
}

TEST(SafetensorsColumns, OnDiskAreThoseInMemory) {
  TempDir dir;
  const std::string path = dir.file("d.safetensors"), spec = "safetensors:" + path;
  write_safetensors(path, {{"x", counting({5, 3})},
                           {"y", Tensor::of<int64_t>({5}, std::vector<int64_t>{4, 3, 2, 1, 0})}});
  for (const std::string memory : {"", "?memory=0"}) {
    const SampleSourcePtr source = open_data(spec + memory).source;
    EXPECT_EQ(source->in_memory() == nullptr, !memory.empty());
    Reader reader(source, {.batch = 5});
    const Batch& batch = *reader.next();
    EXPECT_EQ(batch.find("x")->str(), "f32[5, 3]");
    for (int64_t i = 0; i < 15; ++i) EXPECT_EQ(batch.find("x")->at(i), static_cast<double>(i));
    for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(batch.find("y")->integer(i), 4 - i);
  }
  EXPECT_EQ(open_data(spec + "?val=0.4", "test").source->samples(), 2);
}

TEST(SafetensorsColumns, MistakesAreNamed) {
  TempDir dir;
  const std::string path = dir.file("d.safetensors"), spec = "safetensors:" + path;
  write_safetensors(path, {{"x", counting({5, 3})}, {"y", counting({4})}});
  expect_user_error([&] { open_data(spec); },
                    "column 'y' has 4 samples, but the first column has 5");
  write_safetensors(path, {{"x", counting({})}});
  expect_user_error([&] { open_data(spec); },
                    path + ": tensor 'x': a column needs a first dimension that counts samples");
  write_safetensors(path, {});
  expect_user_error([&] { open_data(spec); }, "'" + path + "' holds no tensor");
  write_plain(path, "short");
  expect_user_error([&] { open_data(spec); }, path + ": too short for a safetensors file");
  expect_user_error([&] { open_data(path); }, "did you mean 'safetensors:" + path + "'?");
}

}  // namespace
}  // namespace fluid::safetensors_columns_test
