#pragma once

// The gradient of a convolution's filters in bf16, in slices of the batch, one a thread.
//
// oneDNN's own kernels let their threads wait for each other at every image, and spin meanwhile:
// where other processes have the cores, for as long as the system leaves one of the threads out.
// Slices do not wait for each other; where nobody else wants the cores they take as long.

#include <dnnl.hpp>
#include <functional>
#include <memory>
#include <vector>

namespace fluid {

class OnednnSlices {
 public:
  using PrimitiveDesc = dnnl::convolution_backward_weights::primitive_desc;
  using Desc = dnnl::memory::desc;
  /// The gradient `dw` for images `x` and `dy`; empty where oneDNN has none.
  using Make = std::function<PrimitiveDesc(const Desc& x, const Desc& dw, const Desc& dy)>;

  /// As many slices as the pool has threads, in the layouts that `whole` takes; fewer where there
  /// are fewer images or the sums would take much memory. Null for a pool of one thread, where
  /// oneDNN has no kernel for them, and for other dtypes.
  static std::shared_ptr<const OnednnSlices> of(const PrimitiveDesc& whole, const Make& make);

  int64_t workspace() const;  ///< bytes

  /// A call that computes the gradient in this memory; it throws DeviceError when oneDNN fails.
  std::function<void()> bind(void* x, void* dy, void* dw, void* workspace) const;

 private:
  struct Slice {
    dnnl::convolution_backward_weights primitive;
    Desc x, dw, dy, scratch;
    int64_t first;  ///< image
  };

  std::vector<Slice> slices_;
  int64_t x_bytes_ = 0, dy_bytes_ = 0;  ///< of an image
};

}  // namespace fluid
