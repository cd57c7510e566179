// Loading the library that drives GPUs, on machines that libraries of ours make up.

#include <gtest/gtest.h>

#include <cstdlib>

#include "executor/gpu_driver/backend.h"
#include "executor/places/find_place.h"
#include "tests/support/errors.h"
#include "tests/support/processes.h"
#include "tests/support/temp_dir.h"

namespace fluid::gpu_backend_test {
namespace {

std::string made_up(const std::string& name) {
  return std::string(FLUID_BINARY_DIR) + "/gpu_libraries/" + name + ".so";
}

/// Returns the reason why the library finds no GPUs. Expects that the reason has one line and that
/// all functions report it.
std::string absence(const std::string& library) {
  const GpuBackend backend = find_gpus(library);
  EXPECT_EQ(backend.devices, 0);
  EXPECT_FALSE(backend.unavailable_reason.empty());
  EXPECT_EQ(backend.unavailable_reason.find('\n'), std::string::npos) << backend.unavailable_reason;
  EXPECT_THROW(describe_gpu(backend, 0), DeviceError);
  EXPECT_THROW(require_supported_gpu(backend, 0), DeviceError);
  return backend.unavailable_reason;
}

/// Returns the text of the DeviceError that require_supported_gpu() throws.
std::string refusal(const GpuBackend& backend, int device) {
  try {
    require_supported_gpu(backend, device);
  } catch (const DeviceError& e) {
    return e.what();
  }
  return "";
}

TEST(GpuBackend, SaysThatALibraryIsNotThere) {
  const TempDir dir;
  EXPECT_EQ(absence(dir.file("none.so")), "there is no library '" + dir.file("none.so") + "'");
  EXPECT_EQ(absence("libfluid_none.so"), "there is no library 'libfluid_none.so'");
}

TEST(GpuBackend, NamesALibraryThatIsNeededAndMissing) {
  EXPECT_EQ(absence(made_up("needs_absent")),
            "'" + made_up("needs_absent") +
                "' needs libfluid_absent.so, which is not found: install it, or name its folder in "
                "LD_LIBRARY_PATH");
}

TEST(GpuBackend, SaysWhatIsWrongWithAFile) {
  const TempDir dir;
  write_plain(dir.file("text.so"), "no library");
  const std::string why = absence(dir.file("text.so"));
  EXPECT_TRUE(why.starts_with("'" + dir.file("text.so") + "' cannot be loaded: ")) << why;
  EXPECT_EQ(absence("libm.so.6"),
            "'libm.so.6' is not a GPU library of Fluid: it lacks fluid_gpu_table");
}

TEST(GpuBackend, RejectsAnotherVersion) {
  EXPECT_EQ(absence(made_up("other_version")),
            "'" + made_up("other_version") +
                "' is of another version of Fluid than this program: it lacks version " +
                std::to_string(FLUID_GPU_TABLE_VERSION) + " of the shared interface");
}

TEST(GpuBackend, TellsDriversThatDoNotServeApart) {
  EXPECT_EQ(absence(made_up("no_driver")),
            "no NVIDIA driver is installed, or this container sees none");
  EXPECT_EQ(absence(made_up("old_driver")),
            "the NVIDIA driver is too old: it runs CUDA 12.4, 13.0 is needed");
  EXPECT_EQ(absence(made_up("broken_driver")),
            "the NVIDIA driver does not work: cudaErrorMadeUp, as asked");
}

TEST(GpuBackend, SaysWhichGpusAreLookedFor) {
  unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(absence(made_up("no_gpus")), "the NVIDIA driver finds no GPU");
  setenv("CUDA_VISIBLE_DEVICES", "5", 1);
  EXPECT_EQ(absence(made_up("no_gpus")),
            "the NVIDIA driver finds no GPU that CUDA_VISIBLE_DEVICES='5' leaves");
  unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST(GpuBackend, DescribesGpus) {
  const GpuBackend backend = find_gpus(made_up("three_gpus"));
  EXPECT_EQ(backend.unavailable_reason, "");
  EXPECT_EQ(backend.devices, 3);
  EXPECT_EQ(backend.versions.dnn, 91900);
  EXPECT_STREQ(describe_gpu(backend, 0).name, "Made-up GPU 0");
  EXPECT_EQ(&require_supported_gpu(backend, 0), backend.table);
}

/// Each rank has another of those that are supported; one too many has none.
TEST(GpuBackend, RanksAreNumberedAmongSupportedGpus) {
  const std::string path = made_up("three_gpus");
  EXPECT_EQ(supported_gpu_indices(find_gpus(path)), (std::vector<int>{0, 2}));
  const auto body = [&](const World& world) {
    setenv("FLUID_GPU_LIBRARY", path.c_str(), 1);
    return best_place(world.rank).str() + " " + parse_place("cuda", world.rank).str();
  };
  const std::vector<std::string> places = testing::Ranks(3, body).results();
  EXPECT_EQ(places[0], "cuda:0 cuda:0");
  EXPECT_EQ(places[1], "cuda:2 cuda:2");
  EXPECT_TRUE(places[2].starts_with(
      "UserError: this process has local rank 2, but the last GPU that programs can run on is "
      "cuda:2: start as many ranks"))
      << places[2];
}

TEST(GpuBackend, RejectsGpusThatAreNotThereOrNotSupported) {
  const GpuBackend backend = find_gpus(made_up("three_gpus"));
  for (const int device : {-1, 3}) {
    expect_user_error(
        [&] { require_supported_gpu(backend, device); },
        "there is no GPU cuda:" + std::to_string(device) + "; this machine's last is cuda:2");
  }
  EXPECT_EQ(refusal(backend, 1),
            "cuda:1 (Made-up GPU 1): compute capability 7.5 is not supported, 8.0 and newer are");
  EXPECT_EQ(refusal(backend, 2), "cuda:2: cudaErrorMadeUp, as asked");
}

}  // namespace
}  // namespace fluid::gpu_backend_test
