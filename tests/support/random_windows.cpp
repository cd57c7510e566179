#include "tests/support/random_windows.h"

#include "frontend/layers.h"

namespace fluid::testing {
namespace {

/// [N, C, ...] with `dims` spatial dimensions.
struct Images {
  Value x;
  size_t dims;
  int64_t channels;
};

Images images(const Choice& c) {
  Value x = c.x;
  c.require_rank(3);
  if (c.rank() > 5) throw UserError("rank");
  if (c.rank() < 5 && c.below(4) == 0) x = unsqueeze(x, {.axes = {c.one_of<int64_t>({1, 2})}});
  if (x.shape()[1].batch) throw UserError("batch");
  return {x, x.shape().size() - 2, x.shape()[1].size};
}

struct Window {
  Ints kernel, stride, padding, dilation;
};

Ints numbers(const Choice& c, size_t n, std::initializer_list<int64_t> choices) {
  Ints list;
  for (size_t i = 0; i < n; ++i) list.push_back(c.one_of(choices));
  return list;
}

/// The padding is below the kernel, as poolings require.
Window window(const Choice& c, size_t dims) {
  Window w = {.kernel = numbers(c, dims, {1, 2, 3}),
              .stride = numbers(c, dims, {1, 1, 2, 3}),
              .padding = {},
              .dilation = numbers(c, dims, {1, 1, 1, 2})};
  for (size_t i = 0; i < 2 * dims; ++i) {
    const auto taps = static_cast<size_t>(w.kernel[i % dims]);
    w.padding.push_back(static_cast<int64_t>(c.below(taps)));
  }
  return w;
}

Act activation(const Choice& c) {
  return c.one_of<Act>({Act::none, Act::none, Act::relu, Act::gelu, Act::silu, Act::tanh});
}

Value convolution(const Choice& c) {
  const Images in = images(c);
  const Window w = window(c, in.dims);
  const int64_t groups = c.below(3) == 0 ? in.channels : 1;
  const Conv layer = {.filters = groups * c.one_of<int64_t>({1, 2, 3, 16 / groups + 1}),
                      .kernel = w.kernel,
                      .stride = w.stride,
                      .padding = w.padding,
                      .dilation = w.dilation,
                      .groups = groups,
                      .bias = c.coin(),
                      .act = activation(c)};
  if (in.dims == 1) return conv1d(in.x, layer);
  return in.dims == 2 ? conv2d(in.x, layer) : conv3d(in.x, layer);
}

Value same_convolution(const Choice& c) {
  c.require_rank(4);
  return conv2d(c.x, {.filters = 3,
                      .kernel = numbers(c, 2, {2, 3}),
                      .stride = c.one_of<int64_t>({1, 2}),
                      .padding = c.one_of({Same::upper, Same::lower})});
}

Value transposed_convolution(const Choice& c) {
  const Images in = images(c);
  Window w = window(c, in.dims);
  Ints output_padding;
  for (const int64_t stride : w.stride) {
    output_padding.push_back(static_cast<int64_t>(c.below(static_cast<size_t>(stride))));
  }
  const int64_t groups = c.below(3) == 0 ? in.channels : 1;
  const ConvTranspose layer = {.filters = groups * c.one_of<int64_t>({1, 2}),
                               .kernel = w.kernel,
                               .stride = w.stride,
                               .padding = w.padding,
                               .output_padding = output_padding,
                               .dilation = w.dilation,
                               .groups = groups,
                               .bias = c.coin(),
                               .act = activation(c)};
  if (in.dims == 1) return conv1d_transpose(in.x, layer);
  return in.dims == 2 ? conv2d_transpose(in.x, layer) : conv3d_transpose(in.x, layer);
}

template <class PoolAttrs>
PoolAttrs pool_attrs(const Choice& c, size_t dims) {
  const Window w = window(c, dims);
  PoolAttrs attrs = {.kernel = w.kernel};
  if (c.coin()) attrs.stride = w.stride;
  attrs.padding = w.padding;
  attrs.dilation = w.dilation;
  attrs.ceil_mode = c.coin();
  return attrs;
}

template <class PoolAttrs>
PoolAttrs average_attrs(const Choice& c, size_t dims) {
  PoolAttrs attrs = pool_attrs<PoolAttrs>(c, dims);
  attrs.count_include_pad = c.coin();
  attrs.divisor_override = c.one_of<int64_t>({0, 0, 3});
  return attrs;
}

Value max_pooling(const Choice& c) {
  const auto [x, dims, channels] = images(c);
  if (dims == 1) return max_pool1d(x, pool_attrs<MaxPool1dAttrs>(c, dims));
  if (dims == 2) return max_pool2d(x, pool_attrs<MaxPool2dAttrs>(c, dims));
  return max_pool3d(x, pool_attrs<MaxPool3dAttrs>(c, dims));
}

Value average_pooling(const Choice& c) {
  const auto [x, dims, channels] = images(c);
  if (dims == 1) return avg_pool1d(x, average_attrs<AvgPool1dAttrs>(c, dims));
  if (dims == 2) return avg_pool2d(x, average_attrs<AvgPool2dAttrs>(c, dims));
  return avg_pool3d(x, average_attrs<AvgPool3dAttrs>(c, dims));
}

Value norm_pooling(const Choice& c) {
  const auto [x, dims, channels] = images(c);
  LpPoolAttrs attrs = pool_attrs<LpPoolAttrs>(c, dims);
  attrs.p = c.one_of<double>({1, 2, 3});
  return lp_pool(x, attrs);
}

Ints size(const Choice& c) { return numbers(c, 2, {1, 2, 3, 5, 8}); }

Value resized(const Choice& c) {
  c.require_rank(4);
  const auto mode = c.one_of<std::string>({"nearest", "bilinear", "bicubic"});
  return resize2d(
      c.x, {.output = size(c), .mode = mode, .align_corners = mode != "nearest" && c.coin()});
}

Value folded(const Choice& c) {
  c.require_rank(4);
  const Window w = window(c, 2);
  const Value columns = unfold(
      c.x, {.kernel = w.kernel, .stride = w.stride, .padding = w.padding, .dilation = w.dilation});
  if (c.coin()) return columns;
  return fold(tanh(columns), {.output = {c.extent(2), c.extent(3)},
                              .kernel = w.kernel,
                              .stride = w.stride,
                              .padding = w.padding,
                              .dilation = w.dilation});
}

constexpr Make kWindows[] = {
    convolution,
    convolution,
    same_convolution,
    transposed_convolution,
    max_pooling,
    average_pooling,
    norm_pooling,
    resized,
    folded,
    [](const Choice& c) {
      c.require_rank(4);
      return adaptive_avg_pool2d(c.x, {.output = size(c)});
    },
    [](const Choice& c) {
      c.require_rank(4);
      return adaptive_max_pool2d(c.x, {.output = size(c)});
    },
};

}  // namespace

Value random_window_op(const Choice& c) { return pick(c, kWindows); }

}  // namespace fluid::testing
