#include "executor/gpu_libraries/gpu_workspace.h"

#include <algorithm>
#include <numeric>

namespace fluid {
namespace {

constexpr double kMiB = 1 << 20;

double size_of(FluidGpuDtype number) {
  return number == fluid_gpu_f64 ? 8 : number == fluid_gpu_f32 ? 4 : 2;
}

/// Element counts of the tensors, with channels padded to a multiple of `lanes`.
struct Elements {
  double images, filters, maps;
  Elements(const FluidGpuConvolution& c, int64_t lanes) {
    const auto padded = [&](int64_t channels) {
      return static_cast<double>((channels + lanes - 1) / lanes * lanes);
    };
    const double channels = padded(c.channels), made = padded(c.filters);
    const auto count = static_cast<double>(c.images);
    images = count * channels * static_cast<double>(c.height * c.width);
    filters = made * channels * static_cast<double>(c.filter_height * c.filter_width);
    maps = count * made * static_cast<double>(c.map_height * c.map_width);
  }
  double all() const { return images + filters + maps; }
};

constexpr int64_t kHalfLanes = 8, kWideLanes = 4;

/// Bytes of copies that the fastest algorithms make besides layout conversion. Exact f32 filter
/// gradients have NHWC kernels, which cuDNN prefers for enough channels.
double copied_bytes(const FluidGpuConvolution& c) {
  const bool last_is_fast = c.number == fluid_gpu_f32 && c.tf32 == 0 && c.channels_last == 0 &&
                            c.direction == fluid_gpu_filter_gradient && c.channels >= kHalfLanes;
  return last_is_fast ? 4 * Elements(c, kWideLanes).all() : 0;
}

/// Bytes of f32 partial sums (split-K) of half-precision gradients; cuDNN's workspaces are
/// multiples of them. cuDNN splits sums where few filters or small images would leave SMs idle. For
/// filter gradients, up to 52 partial sums occur. Beyond one 128 x 128 tile per SM of an RTX 5090
/// (170 SMs), more workspace enables no further algorithm. Image gradients need at most 2 MiB.
double parts_bytes(const FluidGpuConvolution& c) {
  constexpr double kFilterParts = 52, kTiles = 170.0 * 128 * 128 * sizeof(float);
  const Elements padded(c, kHalfLanes);
  if (c.number == fluid_gpu_f32 || c.direction == fluid_gpu_forward) return 0;
  if (c.direction == fluid_gpu_data_gradient) return std::min(4 * padded.images, 2 * kMiB);
  return std::min(kFilterParts * 4 * padded.filters, kTiles);
}

/// Additional bytes, so that algorithms with other workspace needs fit too, such as other split-K
/// factors.
double choice_bytes(const FluidGpuConvolution& c, double copied) {
  const double parts = parts_bytes(c);
  if (c.direction != fluid_gpu_filter_gradient || copied == 0) return kMiB + parts;
  return std::max({2 * kMiB, size_of(c.number) * Elements(c, 1).all() / 2, parts});
}

/// Twice the bytes that the matmul reads and writes, because cuBLASLt's algorithms are unknown
/// without a GPU. At most NVIDIA's recommendation for Hopper and Blackwell (cuBLAS Library:
/// cublasSetWorkspace).
double choice_bytes(const FluidGpuMatmul& p) {
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n),
             k = static_cast<double>(p.k);
  const double bytes = size_of(p.operands) * (m * k + k * n) + size_of(p.result) * m * n;
  return std::clamp(2 * static_cast<double>(p.count) * bytes, 4 * kMiB, 32 * kMiB);
}

}  // namespace

std::array<double, 3> layout_conversion_bytes(const FluidGpuConvolution& c) {
  const bool half = c.number != fluid_gpu_f32, last = c.channels_last != 0;
  const bool wants_last = half || c.tf32 != 0;
  const int64_t lanes = half ? kHalfLanes : wants_last ? kWideLanes : 1;
  const Elements padded(c, lanes);
  const double size = half ? 2 : 4;
  const bool turns = wants_last != last;
  return {turns || c.channels % lanes != 0 ? size * padded.images : 0,
          turns || last ? size * padded.filters : 0,
          turns || c.filters % lanes != 0 ? size * padded.maps : 0};
}

int64_t workspace_for(const GpuTask& task, int64_t most) {
  const double allowed = static_cast<double>(most) / kGpuWorkspace;
  double bytes = 0;
  if (const auto* product = std::get_if<FluidGpuMatmul>(&task)) {
    bytes = allowed * choice_bytes(*product);
  } else {
    const auto& convolution = std::get<FluidGpuConvolution>(task);
    const auto turned = layout_conversion_bytes(convolution);
    const double copied = std::accumulate(turned.begin(), turned.end(), copied_bytes(convolution));
    bytes = copied + allowed * choice_bytes(convolution, copied);
  }
  return bytes < static_cast<double>(most) ? static_cast<int64_t>(bytes) : most;
}

}  // namespace fluid
