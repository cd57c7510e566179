#pragma once

// The filter gradient of a convolution in bf16, computed in slices of the batch, one per thread.
//
// In oneDNN's own kernels threads wait for each other at every image, and spin meanwhile. If other
// processes use the cores, they wait until the system schedules the slowest thread. Slices do not
// wait for each other. On idle cores they take as long as oneDNN's kernels.

#include <dnnl.hpp>
#include <functional>
#include <memory>
#include <vector>

namespace fluid {

class OnednnShards {
 public:
  using PrimitiveDesc = dnnl::convolution_backward_weights::primitive_desc;
  using Desc = dnnl::memory::desc;
  /// Returns the primitive for the gradient `dw` of images `x` and `dy`; empty if oneDNN has none.
  using Make = std::function<PrimitiveDesc(const Desc& x, const Desc& dw, const Desc& dy)>;

  /// Returns one slice per thread of the pool, in the layouts of `whole`. There are fewer if there
  /// are fewer images, or if the gradients would take too much memory. Returns null for a pool of
  /// one thread, for a dtype other than bf16, and if oneDNN has no kernel for a slice.
  static std::shared_ptr<const OnednnShards> of(const PrimitiveDesc& whole, const Make& make);

  int64_t workspace() const;  ///< bytes

  /// Returns a call that computes the gradient in the given memory. The call throws DeviceError
  /// when oneDNN fails.
  std::function<void()> bind(void* x, void* dy, void* dw, void* workspace) const;

 private:
  struct Slice {
    dnnl::convolution_backward_weights primitive;
    Desc x, dw, dy, scratch;
    int64_t first;  ///< first image of the slice
  };

  std::vector<Slice> shards_;
  int64_t x_bytes_ = 0, dy_bytes_ = 0;  ///< bytes per image
};

}  // namespace fluid
