#include "executor/gpu_driver/backend.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "executor/device/out_of_memory.h"
#include "ir/error.h"

namespace fluid {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "libfluid_cuda.so";
constexpr const char* kLibraryVariable = "FLUID_GPU_LIBRARY";

/// The table of a loaded GPU library, or the reason why the library could not be loaded.
struct Library {
  const FluidGpuTable* table = nullptr;
  std::string unavailable_reason;
};

/// Folder of the program or shared library that contains this code; empty if unknown.
fs::path own_folder() {
  Dl_info info = {};
  const bool known = dladdr(reinterpret_cast<const void*>(&cuda_version), &info) != 0;
  return known && info.dli_fname != nullptr ? fs::path(info.dli_fname).parent_path() : fs::path();
}

/// Returns `path` if it is not empty. Otherwise returns the first existing file kName beside
/// libfluid.so, beside the program, or in the program's lib and ../lib. If there is no such file,
/// returns kName, so that dlopen() searches its path.
std::string library_to_load(const std::string& path) {
  if (!path.empty()) return path;
  const fs::path program = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& folder : {own_folder(), program, program / "lib", program / ".." / "lib"}) {
    const fs::path file = folder / kName;
    if (!folder.empty() && fs::exists(file)) return file.lexically_normal().string();
  }
  return kName;
}

std::string why_not_loaded(const std::string& library, const std::string& error) {
  const size_t end = error.find(": cannot open shared object file: No such file");
  const std::string missing = error.substr(0, end == std::string::npos ? 0 : end);
  if (missing.empty()) return fmt::format("'{}' cannot be loaded: {}", library, error);
  if (missing != library) {
    return fmt::format(
        "'{}' needs {}, which is not found: install it, or name its folder in LD_LIBRARY_PATH",
        library, missing);
  }
  if (library != kName) return fmt::format("there is no library '{}'", library);
  return fmt::format(
      "{} is not installed: neither beside the program, in lib or ../lib there, nor where the "
      "loader looks; a build makes it where it finds CUDA 13, cuDNN and NCCL",
      kName);
}

Library load(const std::string& path) {
  const std::string library = library_to_load(path);
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return {.unavailable_reason = why_not_loaded(library, dlerror())};
  const auto table_of = reinterpret_cast<FluidGpuTableFn>(dlsym(handle, FLUID_GPU_TABLE_SYMBOL));
  if (table_of == nullptr) {
    dlclose(handle);
    return {.unavailable_reason = fmt::format("'{}' is not a GPU library of Fluid: it lacks {}",
                                              library, FLUID_GPU_TABLE_SYMBOL)};
  }
  const FluidGpuTable* table = table_of(FLUID_GPU_TABLE_VERSION);
  if (table == nullptr || table->version != FLUID_GPU_TABLE_VERSION) {
    dlclose(handle);
    return {.unavailable_reason =
                fmt::format("'{}' is of another version of Fluid than this program: it "
                            "lacks version {} of the shared interface",
                            library, FLUID_GPU_TABLE_VERSION)};
  }
  return {.table = table};
}

std::string why_unusable(const FluidGpuVersions& versions, const char* error) {
  if (versions.driver == 0) return "no NVIDIA driver is installed, or this container sees none";
  // Compares only the major versions, because a driver runs all minor versions of its CUDA major
  // version.
  if (versions.driver / 1000 < versions.runtime / 1000) {
    return fmt::format("the NVIDIA driver is too old: it runs CUDA {}, {} is needed",
                       cuda_version(versions.driver), cuda_version(versions.runtime));
  }
  return fmt::format("the NVIDIA driver does not work: {}", error);
}

/// The library path in $FLUID_GPU_LIBRARY, or "".
std::string named_library() {
  const char* named = std::getenv(kLibraryVariable);
  return named != nullptr ? named : "";
}

std::string why_no_devices(const char* visible) {
  if (visible == nullptr) return "the NVIDIA driver finds no GPU";
  return fmt::format("the NVIDIA driver finds no GPU that CUDA_VISIBLE_DEVICES='{}' leaves",
                     visible);
}

/// Whether `visible`, the value of CUDA_VISIBLE_DEVICES, hides all GPUs. CUDA ignores an invalid
/// index and all indices after it. Slurm sets "NoDevFiles" for jobs without GPUs.
bool hides_all(std::string_view visible) {
  return visible.empty() || visible.starts_with("-1") || visible == "NoDevFiles";
}

/// Throws if GPU `device` does not exist.
void require_device(const GpuBackend& backend, int device) {
  if (backend.devices == 0) {
    throw DeviceError(fmt::format("there is no cuda:{}: {}; the place cpu needs no GPU", device,
                                  backend.unavailable_reason));
  }
  if (device >= 0 && device < backend.devices) return;
  throw UserError(fmt::format("there is no GPU cuda:{}; this machine's last is cuda:{}", device,
                              backend.devices - 1));
}

}  // namespace

GpuBackend find_gpus(const std::string& path) {
  const Library library = load(path);
  GpuBackend found{.table = library.table, .unavailable_reason = library.unavailable_reason};
  if (found.table == nullptr) return found;
  if (found.table->versions(&found.versions) != fluid_gpu_ok) {
    found.unavailable_reason = found.table->error();
    return found;
  }
  int32_t devices = 0;
  if (found.table->device_count(&devices) != fluid_gpu_ok) {
    found.unavailable_reason = why_unusable(found.versions, found.table->error());
    return found;
  }
  found.devices = devices;
  if (devices > 0) return found;
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  found.unavailable_reason = why_no_devices(visible);
  found.hidden = visible != nullptr && hides_all(visible);
  return found;
}

bool may_have_gpus() {
  if (!named_library().empty()) return true;
  // Checks several files: /dev/nvidiactl may not exist before the driver's first use, and WSL has
  // /dev/dxg instead.
  const char* const signs[] = {"/dev/nvidiactl", "/proc/driver/nvidia/version", "/dev/dxg"};
  return std::ranges::any_of(signs, [](const char* sign) { return fs::exists(sign); });
}

const GpuBackend& gpu_backend() {
  static const GpuBackend found = [] { return find_gpus(named_library()); }();
  return found;
}

std::vector<int> supported_gpu_indices(const GpuBackend& backend) {
  std::vector<int> supported;
  for (int device = 0; device < backend.devices; ++device) {
    int32_t architecture = 0;
    if (backend.table->architecture(device, &architecture) != fluid_gpu_ok) {
      throw DeviceError(fmt::format("cuda:{}: {}", device, backend.table->error()));
    }
    if (architecture >= FLUID_GPU_OLDEST_ARCHITECTURE) supported.push_back(device);
  }
  return supported;
}

FluidGpuDescription describe_gpu(const GpuBackend& backend, int device) {
  require_device(backend, device);
  FluidGpuDescription gpu{};
  const FluidGpuResult result = backend.table->describe(device, &gpu);
  if (result == fluid_gpu_ok) return gpu;
  const std::string error = fmt::format("cuda:{}: {}", device, backend.table->error());
  if (result == fluid_gpu_out_of_memory) throw OutOfMemory(error, kNoContextAdvice);
  throw DeviceError(error);
}

std::string unsupported_reason(const FluidGpuDescription& gpu) {
  if (10 * gpu.major + gpu.minor >= FLUID_GPU_OLDEST_ARCHITECTURE) return "";
  return fmt::format("compute capability {}.{} is not supported, {}.{} and newer are", gpu.major,
                     gpu.minor, FLUID_GPU_OLDEST_ARCHITECTURE / 10,
                     FLUID_GPU_OLDEST_ARCHITECTURE % 10);
}

const FluidGpuTable& require_supported_gpu(const GpuBackend& backend, int device) {
  const FluidGpuDescription gpu = describe_gpu(backend, device);
  if (const std::string why = unsupported_reason(gpu); !why.empty()) {
    throw DeviceError(fmt::format("cuda:{} ({}): {}", device, gpu.name, why));
  }
  return *backend.table;
}

std::string cuda_version(int64_t version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace fluid
