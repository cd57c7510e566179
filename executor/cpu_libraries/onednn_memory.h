#pragma once

// Functions on oneDNN's memory descriptors. The C++ API of these descriptors differs between
// versions of oneDNN.

#include <cstdint>
#include <dnnl.hpp>
#include <optional>

#include "ir/type.h"

namespace fluid {

/// oneDNN's data type for f32 or bf16; nullopt for any other dtype.
std::optional<dnnl::memory::data_type> onednn_dtype(DType dtype);

/// Returns the descriptor of a tensor of concrete `type`, with the layout of `type`.
dnnl::memory::desc onednn_desc(const Type& type);
/// Returns a descriptor with the dtype and extents of `type`. The format is format_tag::any, so
/// that the primitive chooses the layout.
dnnl::memory::desc onednn_any_desc(const Type& type);

/// Returns the descriptor of the first `count` images of a batch.
dnnl::memory::desc onednn_first_images(const dnnl::memory::desc& desc, int64_t count);
/// Returns the bytes between the starts of consecutive images of a batch.
int64_t onednn_image_stride(const dnnl::memory::desc& desc);
/// Returns `desc` with another dtype and the same layout.
dnnl::memory::desc onednn_desc_with_dtype(const dnnl::memory::desc& desc,
                                          dnnl::memory::data_type dtype);

/// Returns `type` with the layout of `desc`, or with no layout if `desc` is plain. Returns nullopt
/// if class Layout cannot represent the layout of `desc`.
std::optional<Type> with_onednn_layout(const Type& type, const dnnl::memory::desc& desc);

/// A conversion from f16 or bf16 to f32, or back, on all threads of the pool. Rounds to nearest
/// even. All CPUs produce the same bits, except in the payload of a NaN.
struct HalfConversion {
  DType half_dtype = DType::f16;
  uint16_t* half_data = nullptr;
  float* f32_data = nullptr;
  int64_t count = 0;
  bool to_f32 = true;  ///< true: `half_data` to `f32_data`; false: `f32_data` to `half_data`

  void run() const;
};

}  // namespace fluid
