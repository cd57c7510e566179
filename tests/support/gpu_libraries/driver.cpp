// Stands for the driver's library, libcuda.so.1: as CUDA's runtime sees one that
//   DRIVER      runs this version of CUDA
//   INIT        returns this from cuInit: 100 where there is no GPU, 803 where the kernel's part of
//               the driver is of another version

#include <cstdint>
#include <cstring>

extern "C" {

int cuDriverGetVersion(int* version) {
  *version = DRIVER;
  return 0;
}

int cuInit(unsigned) { return INIT; }

int cuGetProcAddress(const char* name, void** function, int, uint64_t, int*) {
  *function = nullptr;
  if (std::strcmp(name, "cuDriverGetVersion") == 0) {
    *function = reinterpret_cast<void*>(cuDriverGetVersion);
  }
  if (std::strcmp(name, "cuInit") == 0) *function = reinterpret_cast<void*>(cuInit);
  if (std::strcmp(name, "cuGetProcAddress") == 0) {
    *function = reinterpret_cast<void*>(cuGetProcAddress);
  }
  return *function == nullptr ? 500 : 0;  // CUDA_ERROR_NOT_FOUND
}

int cuGetProcAddress_v2(const char* name, void** function, int version, uint64_t flags,
                        int* status) {
  return cuGetProcAddress(name, function, version, flags, status);
}

int cuGetExportTable(const void** table, const void*) {
  *table = nullptr;
  return 500;
}

}  // extern "C"
