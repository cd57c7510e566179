#pragma once

#include <optional>
#include <string>
#include <vector>

#include "executor/cuda/convolution_description.h"

namespace fluid::cuda {

/// A GPU for which cuDNN selects engines and builds plans: a real GPU with its cuDNN handle, or a
/// simulated GPU described by its properties.
class DnnDevice {
 public:
  explicit DnnDevice(cudnnHandle_t handle) : handle_(handle) {}
  /// `properties`: a GPU's properties in cuDNN's JSON format.
  explicit DnnDevice(const std::string& properties);

  cudnnHandle_t handle() const { return handle_; }
  /// Sets attribute `name` of `descriptor` to the properties of a simulated GPU. Does nothing for a
  /// real GPU.
  void set_device_properties(DnnDescriptor& descriptor, cudnnBackendAttributeName_t name) const {
    if (properties_) descriptor.set(name, *properties_);
  }

 private:
  cudnnHandle_t handle_ = nullptr;
  std::optional<DnnDescriptor> properties_;
};

/// An executable convolution plan, and its workspace in bytes.
struct ConvolutionPlan {
  /// Descriptors that `plan` refers to. They must live as long as `plan`.
  std::vector<DnnDescriptor> components;
  DnnDescriptor plan;
  int64_t workspace = 0;
};

/// Finalized cuDNN heuristics descriptor for an operation graph. Its results are engine
/// configurations, best first.
DnnDescriptor heuristics_of(const ConvolutionDescription& description, const DnnDevice& device,
                            cudnnBackendHeurMode_t mode);

/// The engines that convolution_engines() found, as algorithms.
struct ConvolutionEngines {
  cudnnStatus_t status;  ///< an error if no engine was found and a cuDNN call failed
  std::vector<FluidGpuAlgorithm> algorithms;
};

/// Lists at most `max_count` deterministic engines that need at most `workspace` bytes, in the
/// order of cuDNN's heuristics, fastest first. Engines with reduced precision are excluded, except
/// TF32 engines if `convolution.tf32` is set.
ConvolutionEngines convolution_engines(const FluidGpuConvolution& convolution,
                                       const DnnDevice& device, int64_t workspace, int max_count);

/// Builds the execution plan of `algorithm`. The plan's status is an error when `algorithm` cannot
/// compute the convolution.
ConvolutionPlan create_convolution_plan(const ConvolutionDescription& description,
                                        const DnnDevice& device,
                                        const FluidGpuAlgorithm& algorithm);

}  // namespace fluid::cuda
