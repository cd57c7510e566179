#pragma once

// Computes the filter gradient of a bf16 convolution. Each thread computes the gradient of one
// shard of the batch.
//
// oneDNN's multi-threaded kernels synchronize their threads at every image by spinning. On cores
// shared with other processes, all threads wait until the slowest thread is scheduled. Shards run
// without synchronization. On idle cores, shards take as long as oneDNN's multi-threaded kernels.

#include <dnnl.hpp>
#include <functional>
#include <memory>
#include <vector>

namespace fluid {

/// One single-threaded primitive per shard of the batch.
class OnednnShards {
 public:
  using PrimitiveDesc = dnnl::convolution_backward_weights::primitive_desc;
  using Desc = dnnl::memory::desc;
  /// Returns the descriptor of a primitive that computes `dw` from `x` and `dy`; an empty
  /// descriptor if oneDNN has no such primitive.
  using MakePrimitive = std::function<PrimitiveDesc(const Desc& x, const Desc& dw, const Desc& dy)>;

  /// Splits the batch of the primitive `whole` into one shard per thread of the pool. The shards
  /// have the layouts of `whole`. Makes fewer shards if the batch has fewer images than the pool
  /// has threads, or if the shards' gradients would take too much memory. Returns null for a pool
  /// of one thread, for a dtype other than bf16, or if oneDNN has no kernel for a shard.
  static std::shared_ptr<const OnednnShards> create(const PrimitiveDesc& whole,
                                                    const MakePrimitive& make);

  int64_t workspace() const;  ///< bytes of workspace that a call needs

  /// Returns a function that computes the gradient from the tensors at the given addresses. The
  /// function throws DeviceError when oneDNN fails.
  std::function<void()> bind(void* x, void* dy, void* dw, void* workspace) const;

 private:
  struct Shard {
    dnnl::convolution_backward_weights primitive;
    Desc x, dw, dy, scratch;
    int64_t first;  ///< index of the shard's first image in the batch
  };

  std::vector<Shard> shards_;
  int64_t x_bytes_ = 0, dy_bytes_ = 0;  ///< batch strides in bytes
};

}  // namespace fluid
