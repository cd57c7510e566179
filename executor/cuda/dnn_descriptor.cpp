#include "executor/cuda/dnn_descriptor.h"

namespace fluid::cuda {

std::vector<DnnDescriptor> DnnDescriptor::descriptors(cudnnBackendAttributeName_t name,
                                                      cudnnBackendDescriptorType_t type,
                                                      int64_t max_count) const {
  std::vector<DnnDescriptor> found;
  std::vector<cudnnBackendDescriptor_t> pointers;
  for (int64_t i = 0; i < max_count; ++i) {
    pointers.push_back(found.emplace_back(type).get());
  }
  int64_t count = 0;
  const bool read =
      ok() && cudnnBackendGetAttribute(descriptor_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, max_count,
                                       &count, pointers.data()) == CUDNN_STATUS_SUCCESS;
  found.erase(found.begin() + (read && count < max_count ? count
                               : read                    ? max_count
                                                         : 0),
              found.end());
  return found;
}

}  // namespace fluid::cuda
