#include "executor/gpu/gpu_workspace.h"

#include <algorithm>

namespace fluid {
namespace {

constexpr double kMiB = 1 << 20;

double size_of(FluidGpuNumber number) {
  return number == fluid_gpu_f64 ? 8 : number == fluid_gpu_f32 ? 4 : 2;
}

/// Elements, where as many channels follow each other as `lanes` divides.
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

/// Bytes of what cuDNN turns, or pads, for kernels that take channels last and in eights (in f32 in
/// fours): as its plans for the examples' convolutions need them (9.19, for sm_80 to sm_120). With
/// exact sums of f32 only filters' gradients have such kernels, which cuDNN prefers where there are
/// some channels.
double turned_bytes(const FluidGpuConvolution& c) {
  constexpr int64_t kHalfLanes = 8, kWideLanes = 4;
  if (c.number == fluid_gpu_f32) {
    const bool turns =
        c.tf32 != 0 || (c.direction == fluid_gpu_filter_gradient && c.channels >= kHalfLanes);
    return turns ? 4 * Elements(c, kWideLanes).all() : 0;
  }
  const Elements padded(c, kHalfLanes);
  double elements = padded.filters;
  if (c.channels_last == 0 || c.channels % kHalfLanes != 0) elements += padded.images;
  if (c.channels_last == 0 || c.filters % kHalfLanes != 0) elements += padded.maps;
  return 2 * elements;
}

/// Beside that, to choose from ways that differ in what they need, such as into how many parts a
/// sum is cut.
double choice_bytes(const FluidGpuConvolution& c, double turned) {
  if (c.direction != fluid_gpu_filter_gradient || turned == 0) return kMiB;
  return std::max(2 * kMiB, size_of(c.number) * Elements(c, 1).all() / 2);
}

/// Twice what it reads and writes, as cuBLASLt's ways are not known without a GPU; at most what
/// NVIDIA recommends for Hopper and Blackwell (cuBLAS Library: cublasSetWorkspace).
double choice_bytes(const FluidGpuProduct& p) {
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n),
             k = static_cast<double>(p.k);
  const double bytes = size_of(p.operands) * (m * k + k * n) + size_of(p.result) * m * n;
  return std::clamp(2 * static_cast<double>(p.count) * bytes, 4 * kMiB, 32 * kMiB);
}

}  // namespace

int64_t workspace_for(const GpuTask& task, int64_t most) {
  const double allowed = static_cast<double>(most) / kGpuWorkspace;
  double bytes = 0;
  if (const auto* product = std::get_if<FluidGpuProduct>(&task)) {
    bytes = allowed * choice_bytes(*product);
  } else {
    const auto& convolution = std::get<FluidGpuConvolution>(task);
    const double turned = turned_bytes(convolution);
    bytes = turned + allowed * choice_bytes(convolution, turned);
  }
  return bytes < static_cast<double>(most) ? static_cast<int64_t>(bytes) : most;
}

}  // namespace fluid
