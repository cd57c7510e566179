#include "executor/cuda/result.h"

namespace fluid::cuda {
namespace {

thread_local std::string text;

FluidGpuResult result_code(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return fluid_gpu_ok;
    case cudaErrorMemoryAllocation:
      return fluid_gpu_out_of_memory;
    case cudaErrorInsufficientDriver:
    case cudaErrorCallRequiresNewerDriver:
    case cudaErrorStubLibrary:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorSystemNotReady:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorInitializationError:
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorDevicesUnavailable:
    case cudaErrorDeviceNotLicensed:
      return fluid_gpu_unusable;
    case cudaErrorInvalidValue:
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorInvalidResourceHandle:
    case cudaErrorInvalidKernelImage:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidPtx:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorSymbolNotFound:
    case cudaErrorLaunchOutOfResources:
    case cudaErrorIllegalState:
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated:
    case cudaErrorStreamCaptureMerge:
    case cudaErrorStreamCaptureUnmatched:
    case cudaErrorStreamCaptureUnjoined:
    case cudaErrorStreamCaptureIsolation:
    case cudaErrorStreamCaptureImplicit:
    case cudaErrorStreamCaptureWrongThread:
    case cudaErrorCapturedEvent:
      return fluid_gpu_invalid_usage;
    default:
      return fluid_gpu_failed;
  }
}

}  // namespace

FluidGpuResult to_result(cudaError_t error, const char* action) {
  if (error == cudaSuccess) return fluid_gpu_ok;
  cudaGetLastError();  // clears CUDA's last error, so that no later call returns this error
  // Stores no error message: events are polled often, and a message would allocate memory.
  if (error == cudaErrorNotReady) return fluid_gpu_not_ready;
  return set_error(result_code(error), std::string(action) + ": " + cudaGetErrorName(error) + ", " +
                                           cudaGetErrorString(error));
}

FluidGpuResult set_error(FluidGpuResult result, std::string why) {
  text = std::move(why);
  return result;
}

const char* last_error() { return text.c_str(); }

}  // namespace fluid::cuda
