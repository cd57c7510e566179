#pragma once

// The part of oneDNN's interface that changes between its versions: memory descriptors.

#include <cstdint>
#include <dnnl.hpp>
#include <optional>

#include "ir/type.h"

namespace fluid {

/// f32 and bf16; nullopt for dtypes that oneDNN does not support on a CPU.
std::optional<dnnl::memory::data_type> onednn_dtype(DType dtype);

/// Returns the descriptor of a tensor of concrete `type`, with its layout.
dnnl::memory::desc onednn_desc(const Type& type);
/// Returns a descriptor with the dtype and extents of `type` and a layout of oneDNN's choice.
dnnl::memory::desc onednn_any(const Type& type);

/// The descriptor of a tensor's first `count` images, and the distance between images in bytes.
dnnl::memory::desc onednn_images(const dnnl::memory::desc& desc, int64_t count);
int64_t onednn_image_bytes(const dnnl::memory::desc& desc);
/// Returns `desc` with another dtype and the same layout.
dnnl::memory::desc onednn_as(const dnnl::memory::desc& desc, dnnl::memory::data_type dtype);

/// Returns `type` with the layout of `desc`, or without one when it is plain. Returns nullopt when
/// Layout cannot express it.
std::optional<Type> with_onednn_layout(const Type& type, const dnnl::memory::desc& desc);

/// Copies f16 to f32 or back on all threads of the pool, rounding to nearest even. Every CPU gives
/// the same bits, except for NaN payloads.
struct HalfCopy {
  uint16_t* half = nullptr;
  float* wide = nullptr;
  int64_t n = 0;
  bool widens = true;  ///< copies `half` to `wide`, else `wide` to `half`

  void run() const;
};

}  // namespace fluid
