// libfluid_cuda.so itself, as it was built, on a machine with or without GPUs.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <set>
#include <sstream>

#include "executor/gpu_driver/backend.h"
#include "ir/atomic_file.h"
#include "tests/support/temp_dir.h"

namespace fluid::cuda_library_test {
namespace {

const std::string kLibrary = std::string(FLUID_BINARY_DIR) + "/libfluid_cuda.so";

class CudaLibrary : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kLibrary)) {
      GTEST_SKIP() << "libfluid_cuda.so is not built: CUDA, cuDNN or NCCL is not installed here";
    }
  }
};

/// The words of what a command prints.
std::set<std::string> words_of(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  std::array<char, 4096> chunk;
  while (const size_t n = fread(chunk.data(), 1, chunk.size(), pipe)) text.append(chunk.data(), n);
  EXPECT_EQ(pclose(pipe), 0) << command;
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

TEST_F(CudaLibrary, HasOneSymbol) {
  EXPECT_EQ(words_of("nm -D --defined-only --format=just-symbols " + kLibrary),
            std::set<std::string>{FLUID_GPU_TABLE_SYMBOL});
}

TEST_F(CudaLibrary, NeedsNoDriverToLoad) {
  const std::set<std::string> words = words_of("readelf -d " + kLibrary);
  const auto needs = [&](const std::string& start) {
    const auto found = words.lower_bound("[" + start);
    return found != words.end() && found->starts_with("[" + start);
  };
  for (const char* library : {"libcublasLt.so", "libcudnn.so", "libnccl.so", "libnvJitLink.so"}) {
    EXPECT_TRUE(needs(library)) << library;
  }
  EXPECT_FALSE(needs("libcuda.so"));
  EXPECT_FALSE(needs("libcudart.so"));
}

TEST_F(CudaLibrary, TellsVersionsAndWhatIsMissing) {
  const GpuBackend backend = find_gpus(kLibrary);
  ASSERT_NE(backend.table, nullptr) << backend.unavailable_reason;
  EXPECT_GE(backend.versions.runtime, 13000);
  EXPECT_GE(backend.versions.blas, 130000);
  EXPECT_GE(backend.versions.dnn, 90000);
  EXPECT_GE(backend.versions.collectives, 20000);
  EXPECT_GE(backend.versions.linker, 13000);
  if (backend.versions.driver > 0) GTEST_SKIP() << "this machine has a driver";
  EXPECT_EQ(backend.unavailable_reason,
            "no NVIDIA driver is installed, or this container sees none");
}

TEST_F(CudaLibrary, AnswersWithoutADriver) {
  const GpuBackend backend = find_gpus(kLibrary);
  ASSERT_NE(backend.table, nullptr) << backend.unavailable_reason;
  if (backend.versions.driver > 0) GTEST_SKIP() << "this machine has a driver";
  const FluidGpuTable& table = *backend.table;
  FluidGpuDescription gpu;
  FluidGpu* opened = nullptr;
  int32_t count = 7;
  EXPECT_EQ(table.device_count(&count), fluid_gpu_unusable);
  EXPECT_NE(std::string(table.error()).find("counting GPUs: cudaErrorInsufficientDriver, "),
            std::string::npos)
      << table.error();
  EXPECT_EQ(table.architecture(0, &count), fluid_gpu_unusable);
  EXPECT_EQ(table.describe(0, &gpu), fluid_gpu_unusable);
  EXPECT_EQ(table.open(0, &opened), fluid_gpu_unusable);
  EXPECT_EQ(opened, nullptr);
  FluidGpuVersions versions;
  EXPECT_EQ(table.versions(&versions), fluid_gpu_ok) << "a failure is still remembered";
}

/// A copy that asks for a library that is nowhere, as where that one was not installed.
TEST_F(CudaLibrary, NamesEachLibraryThatItMisses) {
  const TempDir dir;
  for (const std::string needed : {"libcublasLt.so", "libcudnn.so", "libnccl.so", "libnvJitLink"}) {
    std::string bytes = read_file(kLibrary);
    const size_t at = bytes.find(needed + ".");
    ASSERT_NE(at, std::string::npos) << needed;
    bytes.replace(at, 4, "libX");
    const std::string missing = bytes.c_str() + at;
    const std::string copy = dir.file("copy.so");
    write_plain(copy, bytes);
    EXPECT_EQ(find_gpus(copy).unavailable_reason,
              "'" + copy + "' needs " + missing +
                  ", which is not found: install it, or name its folder in LD_LIBRARY_PATH");
  }
}

TEST_F(CudaLibrary, IsFoundBesideTheProgram) {
  const GpuBackend found = find_gpus("");
  EXPECT_EQ(found.table, find_gpus(kLibrary).table);
}

}  // namespace
}  // namespace fluid::cuda_library_test
