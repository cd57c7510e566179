#include <nvJitLink.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "executor/cuda/functions.h"
#include "executor/cuda/objects.h"

namespace fluid::cuda {
namespace {

/// Owns an nvJitLink handle. Stores the result of the first call that failed.
class Linker {
 public:
  explicit Linker(int architecture) {
    const std::string option = "-arch=sm_" + std::to_string(architecture);
    const char* options[] = {option.c_str()};
    result_ = nvJitLinkCreate(&handle_, 1, options);
  }
  ~Linker() {
    if (handle_ != nullptr) nvJitLinkDestroy(&handle_);
  }
  Linker(const Linker&) = delete;
  Linker& operator=(const Linker&) = delete;

  /// Runs `call` unless an earlier call failed.
  template <class Call>
  void run_unless_failed(Call&& call) {
    if (result_ == NVJITLINK_SUCCESS) result_ = call(handle_);
  }
  nvJitLinkResult result() const { return result_; }
  /// Returns a one-line error message: the code of the failed nvJitLink call and the error log.
  std::string failure() const {
    std::string log;
    size_t size = 0;
    if (handle_ != nullptr && nvJitLinkGetErrorLogSize(handle_, &size) == NVJITLINK_SUCCESS) {
      log.resize(size);
      if (nvJitLinkGetErrorLog(handle_, log.data()) != NVJITLINK_SUCCESS) log.clear();
    }
    log.resize(std::min(log.find('\0'), log.size()));
    while (!log.empty() && log.back() == '\n') log.pop_back();
    std::replace(log.begin(), log.end(), '\n', ' ');
    return "nvJitLink's error " + std::to_string(result_) + ": " + log;
  }

 private:
  nvJitLinkHandle handle_ = nullptr;
  nvJitLinkResult result_ = NVJITLINK_SUCCESS;
};

}  // namespace

FluidGpuResult assemble_for(int architecture, const char* ptx, size_t length, void** cubin,
                            size_t* cubin_bytes) {
  const std::string terminated(ptx, length);  // nvJitLink requires null-terminated PTX
  Linker linker(architecture);
  linker.run_unless_failed([&](nvJitLinkHandle handle) {
    return nvJitLinkAddData(handle, NVJITLINK_INPUT_PTX, terminated.c_str(), terminated.size() + 1,
                            "kernels");
  });
  linker.run_unless_failed([](nvJitLinkHandle handle) { return nvJitLinkComplete(handle); });
  size_t bytes = 0;
  linker.run_unless_failed(
      [&](nvJitLinkHandle handle) { return nvJitLinkGetLinkedCubinSize(handle, &bytes); });
  std::unique_ptr<void, decltype(&std::free)> made(std::malloc(bytes), std::free);
  linker.run_unless_failed(
      [&](nvJitLinkHandle handle) { return nvJitLinkGetLinkedCubin(handle, made.get()); });
  if (linker.result() != NVJITLINK_SUCCESS) {
    // nvJitLink does not support GPU architectures that are newer than the library.
    const bool unknown = linker.result() == NVJITLINK_ERROR_UNRECOGNIZED_ARCH;
    return set_error(
        unknown ? fluid_gpu_unusable : fluid_gpu_invalid_usage,
        "assembling kernels for sm_" + std::to_string(architecture) + ": " + linker.failure());
  }
  *cubin = made.release();
  *cubin_bytes = bytes;
  return fluid_gpu_ok;
}

FluidGpuResult assemble(FluidGpu* gpu, const char* ptx, size_t length, void** cubin,
                        size_t* cubin_bytes) {
  return assemble_for(gpu->architecture, ptx, length, cubin, cubin_bytes);
}

void free_cubin(void* cubin) { std::free(cubin); }

}  // namespace fluid::cuda
