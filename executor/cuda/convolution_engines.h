#pragma once

#include <optional>
#include <string>
#include <vector>

#include "executor/cuda/convolution_description.h"

namespace fluid::cuda {

/// A GPU for which cuDNN chooses engines and builds plans: a real one, by handle, or a simulated
/// one, by its properties.
class DnnMachine {
 public:
  explicit DnnMachine(cudnnHandle_t handle) : handle_(handle) {}
  /// `properties`: a GPU's properties in cuDNN's JSON format.
  explicit DnnMachine(const std::string& properties);

  cudnnHandle_t handle() const { return handle_; }
  /// For a simulated GPU: sets attribute `name` of `descriptor` to its properties.
  void tell(DnnDescriptor& descriptor, cudnnBackendAttributeName_t name) const {
    if (properties_) descriptor.set(name, *properties_);
  }

 private:
  cudnnHandle_t handle_ = nullptr;
  std::optional<DnnDescriptor> properties_;
};

/// An executable convolution plan, and its workspace in bytes.
struct ConvolutionPlan {
  std::vector<DnnDescriptor> parts;  ///< the plan's components, which may be needed while it runs
  DnnDescriptor plan;
  int64_t workspace = 0;
};

struct ConvolutionEngines {
  cudnnStatus_t status;  ///< an error only if it may have hidden engines
  std::vector<FluidGpuChoice> choices;
};

/// At most `room` deterministic algorithms that need at most `workspace` bytes, in cuDNN's order of
/// expected speed. None reduces the precision of operands or sums, except f32 to TF32 where
/// allowed.
ConvolutionEngines convolution_engines(const FluidGpuConvolution& convolution,
                                       const DnnMachine& machine, int64_t workspace, int room);

/// Builds the plan of `choice`. Its status is an error when `choice` does not fit the convolution.
ConvolutionPlan plan_of(const ConvolutionDescription& description, const DnnMachine& machine,
                        const FluidGpuChoice& choice);

}  // namespace fluid::cuda
