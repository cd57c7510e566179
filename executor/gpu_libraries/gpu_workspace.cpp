#include "executor/gpu_libraries/gpu_workspace.h"

#include <algorithm>
#include <numeric>

namespace fluid {
namespace {

constexpr double kMiB = 1 << 20;

double size_of(FluidGpuDtype dtype) {
  return dtype == fluid_gpu_f64 ? 8 : dtype == fluid_gpu_f32 ? 4 : 2;
}

/// Element counts of the tensors of a convolution, with channels padded to a multiple of `lanes`.
struct Elements {
  double images, filters, maps;
  Elements(const FluidGpuConvolution& c, int64_t lanes) {
    const auto padded = [&](int64_t channels) {
      return static_cast<double>((channels + lanes - 1) / lanes * lanes);
    };
    const double channels = padded(c.channels), filter_channels = padded(c.filters);
    const auto count = static_cast<double>(c.images);
    images = count * channels * static_cast<double>(c.height * c.width);
    filters = filter_channels * channels * static_cast<double>(c.filter_height * c.filter_width);
    maps = count * filter_channels * static_cast<double>(c.map_height * c.map_width);
  }
  double all() const { return images + filters + maps; }
};

constexpr int64_t kHalfLanes = 8, kWideLanes = 4;

/// Workspace bytes of the copies that layout_conversion_bytes() does not count. For f32 filter
/// gradients without TF32 and with at least 8 channels, cuDNN prefers NHWC kernels, which need NHWC
/// copies of NCHW tensors.
double copied_bytes(const FluidGpuConvolution& c) {
  const bool prefers_nhwc = c.dtype == fluid_gpu_f32 && c.tf32 == 0 && c.channels_last == 0 &&
                            c.direction == fluid_gpu_filter_gradient && c.channels >= kHalfLanes;
  return prefers_nhwc ? 4 * Elements(c, kWideLanes).all() : 0;
}

/// Workspace bytes for the f32 partial sums of half-precision gradients: cuDNN uses split-K where
/// small tensors would leave SMs idle. Filter gradients need at most 52 partial sums, and at most
/// one 128 x 128 tile per SM. Both limits were measured on an RTX 5090 (170 SMs). Input gradients
/// need at most 2 MiB.
double split_k_bytes(const FluidGpuConvolution& c) {
  constexpr double kMaxSplitK = 52, kTiles = 170.0 * 128 * 128 * sizeof(float);
  const Elements padded(c, kHalfLanes);
  if (c.dtype == fluid_gpu_f32 || c.direction == fluid_gpu_forward) return 0;
  if (c.direction == fluid_gpu_data_gradient) return std::min(4 * padded.images, 2 * kMiB);
  return std::min(kMaxSplitK * 4 * padded.filters, kTiles);
}

/// Workspace bytes of a convolution besides the `copied` bytes of converted tensors. Covers the
/// partial sums of split-K, and a reserve for algorithms that need more.
double extra_bytes(const FluidGpuConvolution& c, double copied) {
  const double partial_sums = split_k_bytes(c);
  if (c.direction != fluid_gpu_filter_gradient || copied == 0) return kMiB + partial_sums;
  return std::max({2 * kMiB, size_of(c.dtype) * Elements(c, 1).all() / 2, partial_sums});
}

/// Workspace bytes of a matmul. Estimated as twice the bytes that the matmul reads and writes,
/// because cuBLASLt's algorithms cannot be queried without a GPU. At most 32 MiB, as NVIDIA
/// recommends for Hopper and Blackwell (cuBLAS Library: cublasSetWorkspace).
double extra_bytes(const FluidGpuMatmul& p) {
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n),
             k = static_cast<double>(p.k);
  const double bytes = size_of(p.operands) * (m * k + k * n) + size_of(p.result) * m * n;
  return std::clamp(2 * static_cast<double>(p.count) * bytes, 4 * kMiB, 32 * kMiB);
}

}  // namespace

std::array<double, 3> layout_conversion_bytes(const FluidGpuConvolution& c) {
  const bool half = c.dtype != fluid_gpu_f32, nhwc = c.channels_last != 0;
  const bool wants_last = half || c.tf32 != 0;
  const int64_t lanes = half ? kHalfLanes : wants_last ? kWideLanes : 1;
  const Elements padded(c, lanes);
  const double size = half ? 2 : 4;
  const bool converts = wants_last != nhwc;
  return {converts || c.channels % lanes != 0 ? size * padded.images : 0,
          converts || nhwc ? size * padded.filters : 0,
          converts || c.filters % lanes != 0 ? size * padded.maps : 0};
}

int64_t workspace_for(const GpuTask& task, int64_t max_bytes) {
  const double allowed = static_cast<double>(max_bytes) / kGpuWorkspace;
  double bytes = 0;
  if (const auto* product = std::get_if<FluidGpuMatmul>(&task)) {
    bytes = allowed * extra_bytes(*product);
  } else {
    const auto& convolution = std::get<FluidGpuConvolution>(task);
    const auto converted = layout_conversion_bytes(convolution);
    const double copied =
        std::accumulate(converted.begin(), converted.end(), copied_bytes(convolution));
    bytes = copied + allowed * extra_bytes(convolution, copied);
  }
  return bytes < static_cast<double>(max_bytes) ? static_cast<int64_t>(bytes) : max_bytes;
}

}  // namespace fluid
