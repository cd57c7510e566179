#pragma once

#include <optional>
#include <string>
#include <vector>

#include "executor/cuda/convolution_description.h"

namespace fluid::cuda {

/// A GPU for which cuDNN chooses and prepares kernels: that of a handle, or one that is described
/// and need not be there.
class DnnMachine {
 public:
  explicit DnnMachine(cudnnHandle_t handle) : handle_(handle) {}
  /// `properties`: as cuDNN writes those of a GPU in JSON.
  explicit DnnMachine(const std::string& properties);

  cudnnHandle_t handle() const { return handle_; }
  /// Tells `descriptor`, whose attribute for that is `name`, of a GPU that is not there.
  void tell(DnnDescriptor& descriptor, cudnnBackendAttributeName_t name) const {
    if (properties_) descriptor.set(name, *properties_);
  }

 private:
  cudnnHandle_t handle_ = nullptr;
  std::optional<DnnDescriptor> properties_;
};

/// A convolution that is ready to run, and the bytes of workspace that it needs.
struct ConvolutionPlan {
  std::vector<DnnDescriptor> parts;  ///< what the plan was made of, which may be asked as it runs
  DnnDescriptor plan;
  int64_t workspace = 0;
};

struct ConvolutionEngines {
  cudnnStatus_t status;  ///< also good where there are none, unless one failed that may be there
  std::vector<FluidGpuChoice> choices;
};

/// At most `room` ways to compute a convolution that need at most `workspace` bytes and give the
/// same bits every time, cuDNN's favourites first. None of them rounds factors or sums to fewer
/// bits than they have, but for f32 to TF32 where that is allowed.
ConvolutionEngines convolution_engines(const FluidGpuConvolution& convolution,
                                       const DnnMachine& machine, int64_t workspace, int room);

/// A choice of those above, prepared; its status says when it is none for the convolution.
ConvolutionPlan plan_of(const ConvolutionDescription& description, const DnnMachine& machine,
                        const FluidGpuChoice& choice);

}  // namespace fluid::cuda
