#include "executor/cpu_libraries/onednn_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "executor/cpu_libraries/onednn.h"
#include "executor/device/half_arrays.h"
#include "executor/host/parallel.h"
#include "ir/error.h"
#include "ir/tensor.h"

namespace fluid {
namespace {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

Dims dims_of(const Type& type) {
  Dims dims;
  for (const Dim& d : type.shape) {
    check(!d.batch, "oneDNN needs concrete extents, not " + type.str());
    dims.push_back(d.size);
  }
  return dims;
}

Layout layout_or_plain(const Type& type) {
  if (type.layout) return *type.layout;
  Layout plain;
  plain.order.resize(type.shape.size());
  std::iota(plain.order.begin(), plain.order.end(), 0);
  return plain;
}

struct Blocking {
  Dims padded;   ///< extents rounded up to whole blocks
  Dims strides;  ///< elements between the starts of consecutive blocks along an axis
};

Blocking blocking_of(const Dims& dims, const Layout& layout) {
  Dims block(dims.size(), 1);
  int64_t stride = 1;
  for (const Layout::Block& b : layout.blocks) {
    block[static_cast<size_t>(b.axis)] *= b.size;
    stride *= b.size;
  }
  Blocking result{dims, Dims(dims.size())};
  for (auto axis = layout.order.rbegin(); axis != layout.order.rend(); ++axis) {
    const auto d = static_cast<size_t>(*axis);
    const int64_t blocks = (dims[d] + block[d] - 1) / block[d];
    result.padded[d] = blocks * block[d];
    result.strides[d] = stride;
    stride *= blocks;
  }
  return result;
}

// Maximum number of elements that the calling thread converts alone.
constexpr int64_t kMaxSerialElements = 1 << 14;

}  // namespace

std::optional<dnnl::memory::data_type> onednn_dtype(DType dtype) {
  if (dtype == DType::f32) return dnnl::memory::data_type::f32;
  if (dtype == DType::bf16) return dnnl::memory::data_type::bf16;
  if (dtype == DType::i8) return dnnl::memory::data_type::s8;
  if (dtype == DType::u8) return dnnl::memory::data_type::u8;
  return std::nullopt;
}

Desc onednn_desc(const Type& type) {
  const Dims dims = dims_of(type);
  const Layout layout = layout_or_plain(type);
  const Blocking blocking = blocking_of(dims, layout);
  Layout plain = layout;
  plain.blocks.clear();  // the constructor of memory::desc below does not support blocks
  Desc desc(dims, *onednn_dtype(type.dtype), blocking_of(dims, plain).strides);
  std::copy(blocking.strides.begin(), blocking.strides.end(),
            desc.data.format_desc.blocking.strides);
  auto& blocks = desc.data.format_desc.blocking;
  blocks.inner_nblks = static_cast<int>(layout.blocks.size());
  for (size_t b = 0; b < layout.blocks.size(); ++b) {
    blocks.inner_blks[b] = layout.blocks[b].size;
    blocks.inner_idxs[b] = layout.blocks[b].axis;
  }
  std::copy(blocking.padded.begin(), blocking.padded.end(), desc.data.padded_dims);
  return desc;
}

Desc onednn_any_desc(const Type& type) {
  return Desc(dims_of(type), *onednn_dtype(type.dtype), dnnl::memory::format_tag::any);
}

Desc onednn_first_images(const Desc& desc, int64_t count) {
  Dims dims = desc.dims();
  dims[0] = count;
  return desc.submemory_desc(dims, Dims(dims.size()));
}

int64_t onednn_image_stride(const Desc& desc) {
  return desc.data.format_desc.blocking.strides[0] *
         static_cast<int64_t>(dnnl::memory::data_type_size(desc.data_type()));
}

Desc onednn_desc_with_dtype(const Desc& desc, dnnl::memory::data_type dtype) {
  Desc other = desc;
  other.data.data_type = dnnl::memory::convert_to_c(dtype);
  return other;
}

std::optional<Type> with_onednn_layout(const Type& type, const Desc& desc) {
  const dnnl_memory_desc_t& d = desc.data;
  if (d.format_kind != dnnl_blocked || d.extra.flags != dnnl_memory_extra_flag_none) return {};
  const auto& blocking = d.format_desc.blocking;
  const size_t rank = type.shape.size();
  if (static_cast<size_t>(d.ndims) != rank) return {};  // a filter with a group axis
  Layout layout;
  // Number of blocks along each axis: the padded extent divided by the axis's block sizes.
  Dims blocks(d.padded_dims, d.padded_dims + rank);
  for (int b = 0; b < blocking.inner_nblks; ++b) {
    layout.blocks.push_back({static_cast<int>(blocking.inner_idxs[b]), blocking.inner_blks[b]});
    blocks[static_cast<size_t>(blocking.inner_idxs[b])] /= blocking.inner_blks[b];
  }
  layout.order.resize(rank);
  std::iota(layout.order.begin(), layout.order.end(), 0);
  const auto as_laid_out = [&] {
    Type result = type;
    const bool plain = layout.blocks.empty() && std::ranges::is_sorted(layout.order);
    result.layout = plain ? std::nullopt : std::optional(layout);
    return result;
  };
  if (onednn_desc(as_laid_out()) == desc) return as_laid_out();
  // Order axes by stride. If strides are equal, the axis with fewer blocks is the inner one.
  const auto stride_and_blocks = [&](int axis) {
    return std::pair(blocking.strides[axis], blocks[static_cast<size_t>(axis)]);
  };
  std::ranges::stable_sort(layout.order, std::greater(), stride_and_blocks);
  if (onednn_desc(as_laid_out()) == desc) return as_laid_out();
  return {};
}

std::string onednn_version() {
  const dnnl_version_t* v = dnnl::version();
  return fmt::format("oneDNN {}.{}.{}", v->major, v->minor, v->patch);
}

std::string onednn_settings() {
  return fmt::format("instruction sets {}, hints {}, math mode {}, build {}",
                     static_cast<int>(dnnl::get_effective_cpu_isa()),
                     static_cast<int>(dnnl::get_cpu_isa_hints()),
                     static_cast<int>(dnnl::get_default_fpmath_mode()), dnnl::version()->hash);
}

void HalfConversion::run() const {
  const auto convert_range = [](void* context, int64_t begin, int64_t end) {
    const auto& conversion = *static_cast<const HalfConversion*>(context);
    uint16_t* half = conversion.half_data + begin;
    float* wide = conversion.f32_data + begin;
    const auto n = static_cast<size_t>(end - begin);
    conversion.to_f32 ? halves_to_floats(conversion.half_dtype, half, wide, n)
                      : floats_to_halves(conversion.half_dtype, wide, half, n);
  };
  parallel_for(count, count > kMaxSerialElements ? thread_count(0) : 1, convert_range,
               const_cast<HalfConversion*>(this));
}

}  // namespace fluid
