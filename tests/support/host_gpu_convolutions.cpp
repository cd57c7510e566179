#include "tests/support/host_gpu_convolutions.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "tests/support/host_gpu_numbers.h"

namespace fluid::testing {
namespace {

constexpr uint64_t kMark = 0x636f6e76;  ///< in choices that are the host's
constexpr int64_t kParts = 4;

using Index4 = std::array<int64_t, 4>;  ///< indices of an element, or extents: [n, c, h, w]
using Numbers = std::vector<float>;

struct TensorLayout {
  Index4 extents;
  bool channels_last;

  int64_t count() const { return extents[0] * extents[1] * extents[2] * extents[3]; }
  size_t at(const Index4& p) const {
    const auto [n, c, h, w] = p;
    const auto [_, cs, hs, ws] = extents;
    return static_cast<size_t>(channels_last ? ((n * hs + h) * ws + w) * cs + c
                                             : ((n * cs + c) * hs + h) * ws + w);
  }
  int64_t column_stride() const { return channels_last ? extents[1] : 1; }
};

TensorLayout images_of(const FluidGpuConvolution& c) {
  return {{c.images, c.channels, c.height, c.width}, c.channels_last != 0};
}
TensorLayout filters_of(const FluidGpuConvolution& c) {
  return {{c.filters, c.channels / c.groups, c.filter_height, c.filter_width}, false};
}
TensorLayout maps_of(const FluidGpuConvolution& c) {
  return {{c.images, c.filters, c.map_height, c.map_width}, c.channels_last != 0};
}
TensorLayout a_of(const FluidGpuConvolution& c) {
  return c.direction == fluid_gpu_data_gradient ? maps_of(c) : images_of(c);
}
TensorLayout b_of(const FluidGpuConvolution& c) {
  return c.direction == fluid_gpu_filter_gradient ? maps_of(c) : filters_of(c);
}
TensorLayout result_of(const FluidGpuConvolution& c) {
  if (c.direction == fluid_gpu_filter_gradient) return filters_of(c);
  return c.direction == fluid_gpu_forward ? maps_of(c) : images_of(c);
}

Numbers numbers_at(const FluidGpuConvolution& c, const void* data, int64_t count) {
  Numbers numbers;
  const bool rounds = c.dtype == fluid_gpu_f32 && c.tf32 != 0;
  for (int64_t i = 0; i < count; ++i) {
    const double value = load_as_double(data, c.dtype, i);
    numbers.push_back(static_cast<float>(rounds ? as_tf32(value) : value));
  }
  return numbers;
}

/// Computes one convolution: sums the products of filter taps and pixels for each output element.
class Computation {
 public:
  Computation(const FluidGpuConvolution& c, const FluidGpuOperands& f)
      : c_(c),
        images_(images_of(c)),
        filters_(filters_of(c)),
        maps_(maps_of(c)),
        a_(numbers_at(c, f.a, a_of(c).count())),
        b_(numbers_at(c, f.b, b_of(c).count())) {}

  /// Extent of the outer loop of an element's sum.
  int64_t steps() const {
    if (c_.direction == fluid_gpu_filter_gradient) return c_.images;
    return (c_.direction == fluid_gpu_forward ? c_.channels : c_.filters) / c_.groups;
  }

  /// The results [p[0], p[1], p[2], :], summed over the steps [begin, end). Each partial sum is
  /// rounded to f32.
  Numbers row(const Index4& p, int64_t begin, int64_t end) const {
    Numbers sums(static_cast<size_t>(result_of(c_).extents[3]));
    for (int64_t step = begin; step < end; ++step) {
      if (c_.direction == fluid_gpu_forward) add_forward(p, step, sums);
      if (c_.direction == fluid_gpu_data_gradient) add_data_gradient(p, step, sums);
      if (c_.direction == fluid_gpu_filter_gradient) add_filter_gradient(p, step, sums);
    }
    return sums;
  }

 private:
  static void add(float& sum, double a, double b) { sum = static_cast<float>(sum + a * b); }

  /// The pixel under a tap of a window; outside the image in the padding.
  int64_t pixel(int axis, int64_t window, int64_t tap) const {
    return window * c_.stride[axis] + tap * c_.dilation[axis] - c_.padding[axis];
  }
  int64_t channel(int64_t filter, int64_t own) const {
    return filter / (c_.filters / c_.groups) * (c_.channels / c_.groups) + own;
  }

  /// Calls visit(x, px) for each window x whose tap kx lies on a pixel px of the image.
  template <class Visit>
  void for_each_pixel(int64_t kx, const Visit& visit) const {
    for (int64_t x = 0; x < c_.map_width; ++x) {
      const int64_t px = pixel(1, x, kx);
      if (px >= 0 && px < c_.width) visit(x, px);
    }
  }

  void add_forward(const Index4& map, int64_t own, Numbers& sums) const {
    const auto [n, filter, y, _] = map;
    for (int64_t ky = 0; ky < c_.filter_height; ++ky) {
      const int64_t py = pixel(0, y, ky);
      if (py < 0 || py >= c_.height) continue;
      const float* const pixels = &a_[images_.at({n, channel(filter, own), py, 0})];
      for (int64_t kx = 0; kx < c_.filter_width; ++kx) {
        const float tap = b_[filters_.at({filter, own, ky, kx})];
        for_each_pixel(kx, [&](int64_t x, int64_t px) {
          add(sums[static_cast<size_t>(x)], pixels[px * images_.column_stride()], tap);
        });
      }
    }
  }

  void add_data_gradient(const Index4& image, int64_t of_group, Numbers& sums) const {
    const auto [n, c, py, _] = image;
    const int64_t channels = c_.channels / c_.groups;
    const int64_t filter = c / channels * (c_.filters / c_.groups) + of_group;
    for (int64_t ky = 0; ky < c_.filter_height; ++ky) {
      const int64_t y = (py - pixel(0, 0, ky)) / c_.stride[0];
      if (y < 0 || y >= c_.map_height || pixel(0, y, ky) != py) continue;
      const float* const gradients = &a_[maps_.at({n, filter, y, 0})];
      for (int64_t kx = 0; kx < c_.filter_width; ++kx) {
        const float tap = b_[filters_.at({filter, c % channels, ky, kx})];
        for_each_pixel(kx, [&](int64_t x, int64_t px) {
          add(sums[static_cast<size_t>(px)], gradients[x * maps_.column_stride()], tap);
        });
      }
    }
  }

  void add_filter_gradient(const Index4& taps, int64_t n, Numbers& sums) const {
    const auto [filter, own, ky, _] = taps;
    for (int64_t y = 0; y < c_.map_height; ++y) {
      const int64_t py = pixel(0, y, ky);
      if (py < 0 || py >= c_.height) continue;
      const float* const pixels = &a_[images_.at({n, channel(filter, own), py, 0})];
      const float* const gradients = &b_[maps_.at({n, filter, y, 0})];
      for (int64_t kx = 0; kx < c_.filter_width; ++kx) {
        for_each_pixel(kx, [&](int64_t x, int64_t px) {
          add(sums[static_cast<size_t>(kx)], pixels[px * images_.column_stride()],
              gradients[x * maps_.column_stride()]);
        });
      }
    }
  }

  FluidGpuConvolution c_;
  TensorLayout images_, filters_, maps_;
  Numbers a_, b_;
};

/// Calls visit(p) for each row of the tensor, with p[3] = 0.
template <class Visit>
void for_each_row(const TensorLayout& tensor, const Visit& visit) {
  Index4 p = {};
  for (p[0] = 0; p[0] < tensor.extents[0]; ++p[0]) {
    for (p[1] = 0; p[1] < tensor.extents[1]; ++p[1]) {
      for (p[2] = 0; p[2] < tensor.extents[2]; ++p[2]) visit(p);
    }
  }
}

void finish(const FluidGpuConvolution& c, const FluidGpuOperands& f, const Index4& p,
            double value) {
  const auto at = static_cast<int64_t>(result_of(c).at(p));
  if (c.has_addend != 0) value += load_as_double(f.addend, c.dtype, at);
  if (c.bias != 0) value += load_as_double(f.bias, c.dtype, p[1]);
  if (c.relu != 0) value = value > 0 ? value : 0;  // 0 for a NaN, too
  store_from_double(f.result, c.dtype, at, value);
}

int64_t parts_bytes(const FluidGpuConvolution& c) { return kParts * result_of(c).count() * 8; }
bool in_parts(const FluidGpuAlgorithm& choice) { return choice.opaque[1] > 1; }

}  // namespace

std::string host_fault(const FluidGpuConvolution& c) {
  if (c.dtype < fluid_gpu_f32 || c.dtype > fluid_gpu_bf16) return "a convolution of no kind";
  if (c.groups < 1 || c.channels % c.groups != 0 || c.filters % c.groups != 0) {
    return "a convolution of uneven groups";
  }
  for (const TensorLayout& tensor : {images_of(c), filters_of(c), maps_of(c)}) {
    if (tensor.count() < 1) return "a convolution of nothing";
  }
  const auto windows = [&](int axis, int64_t in, int64_t taps) {
    return (in + 2 * c.padding[axis] - c.dilation[axis] * (taps - 1) - 1) / c.stride[axis] + 1;
  };
  if (c.map_height != windows(0, c.height, c.filter_height) ||
      c.map_width != windows(1, c.width, c.filter_width)) {
    return "a convolution to maps of another size";
  }
  const bool plain = c.bias == 0 && c.relu == 0;
  if (!plain && (c.has_addend != 0 || c.bias == 0 || c.direction != fluid_gpu_forward)) {
    return "a bias or a relu where there can be none";
  }
  return "";
}

std::vector<FluidGpuAlgorithm> host_choices(const FluidGpuConvolution& c, int64_t workspace) {
  std::vector<FluidGpuAlgorithm> choices;
  if (parts_bytes(c) <= workspace) {
    choices.push_back({.opaque = {kMark, kParts}, .workspace = parts_bytes(c)});
  }
  choices.push_back({.opaque = {kMark, 1}, .workspace = 0});
  return choices;
}

bool is_host_choice(const FluidGpuConvolution& c, const FluidGpuAlgorithm& choice) {
  return choice.opaque[0] == kMark && choice.workspace == (in_parts(choice) ? parts_bytes(c) : 0);
}

std::vector<HostTouched> touched_by(const FluidGpuConvolution& c, const FluidGpuAlgorithm& choice,
                                    const FluidGpuOperands& f) {
  const int64_t bytes = size_of(host_dtype(c.dtype)), result = bytes * result_of(c).count();
  std::vector<HostTouched> touched = {
      {f.a, bytes * a_of(c).count()}, {f.b, bytes * b_of(c).count()}, {f.result, result}};
  if (c.has_addend != 0) touched.push_back({f.addend, result});
  if (c.bias != 0) touched.push_back({f.bias, bytes * c.filters});
  if (in_parts(choice)) touched.push_back({f.workspace, choice.workspace});
  return touched;
}

std::vector<std::function<void()>> host_work(const FluidGpuConvolution& c,
                                             const FluidGpuAlgorithm& choice,
                                             const FluidGpuOperands& f) {
  const auto finish_row = [=](Index4 p, std::span<const float> sums) {
    for (const float sum : sums) {
      finish(c, f, p, sum);
      ++p[3];
    }
  };
  if (!in_parts(choice)) {
    return {[=] {
      const Computation computation(c, f);
      for_each_row(result_of(c), [&](const Index4& p) {
        finish_row(p, computation.row(p, 0, computation.steps()));
      });
    }};
  }
  auto* const parts = static_cast<double*>(f.workspace);  // [n][c][h][part][w]
  const auto row_parts = [=](const Index4& p) {
    const auto [_, cs, hs, ws] = result_of(c).extents;
    return parts + ((p[0] * cs + p[1]) * hs + p[2]) * kParts * ws;
  };
  const auto add_parts = [=] {
    const Computation computation(c, f);
    const int64_t steps = computation.steps();
    for_each_row(result_of(c), [&](const Index4& p) {
      double* to = row_parts(p);
      for (int64_t part = 0; part < kParts; ++part) {
        const Numbers sums = computation.row(p, part * steps / kParts, (part + 1) * steps / kParts);
        to = std::copy(sums.begin(), sums.end(), to);
      }
    });
  };
  const auto add_up = [=] {
    const int64_t width = result_of(c).extents[3];
    for_each_row(result_of(c), [&](Index4 p) {
      const double* const row = row_parts(p);
      for (; p[3] < width; ++p[3]) {
        double whole = 0;
        for (int64_t part = 0; part < kParts; ++part) whole += row[part * width + p[3]];
        finish(c, f, p, whole);
      }
    });
  };
  return {add_parts, add_up};
}

}  // namespace fluid::testing
