#pragma once

// The part of oneDNN's interface that changes between its versions: memory descriptors.

#include <dnnl.hpp>
#include <optional>

#include "ir/type.h"

namespace fluid {

/// f32 and bf16; empty for the dtypes that oneDNN does not compute in on a CPU.
std::optional<dnnl::memory::data_type> onednn_dtype(DType dtype);

/// How a tensor of a concrete `type`, with the layout it has, lies in memory.
dnnl::memory::desc onednn_desc(const Type& type);
/// The same dtype and extents in whatever layout oneDNN likes best.
dnnl::memory::desc onednn_any(const Type& type);

/// The first `count` of a tensor's images, and how far they lie apart.
dnnl::memory::desc onednn_images(const dnnl::memory::desc& desc, int64_t count);
int64_t onednn_image_bytes(const dnnl::memory::desc& desc);
/// The same layout with elements of another dtype.
dnnl::memory::desc onednn_as(const dnnl::memory::desc& desc, dnnl::memory::data_type dtype);

/// `type` with the layout of `desc` (absent when plain); empty when a Layout cannot say it.
std::optional<Type> with_onednn_layout(const Type& type, const dnnl::memory::desc& desc);

}  // namespace fluid
