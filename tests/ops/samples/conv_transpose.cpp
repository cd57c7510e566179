// Transposed convolutions against plain loops that scatter every product.

#include "tests/support/op_harness.h"
#include "tests/support/windows.h"

namespace fluid::testing::conv_transpose_samples {
namespace {

struct Move {
  Extents stride = {1}, padding = {0}, output_padding = {0}, dilation = {1};
  int64_t groups = 1;
};

Attrs attrs_of(const Move& m) {
  return {{"stride", m.stride},
          {"padding", m.padding},
          {"output_padding", m.output_padding},
          {"dilation", m.dilation},
          {"groups", m.groups}};
}

Sample sample(const Extents& x, const Extents& w, const Move& m = {}, bool batch = false) {
  Sample s{{random_tensor(x), random_tensor(w, -2, 2, 1)}, attrs_of(m), {}};
  if (batch) s.batch_dims = {0};
  return s;
}

/// y[n, group o, i * stride + k * dilation - padding] += x[n, c, i] * w[c, o, k].
std::vector<Tensor> scattered(const Sample& s) {
  const Tensor &x = s.inputs[0], &w = s.inputs[1];
  const Extents in = image_of(x.shape()), kernel = image_of(w.shape());
  const size_t dims = in.size();
  const Windows m = windows_of(s.attrs, dims, kernel);
  Extents extra = s.attrs.get<Extents>("output_padding");
  extra.resize(dims, extra[0]);
  Extents out;
  for (size_t d = 0; d < dims; ++d) {
    out.push_back((in[d] - 1) * m.stride[d] + m.reach(d) - m.padding[d] - m.after(d) + extra[d]);
  }
  const int64_t groups = s.attrs.get<int64_t>("groups"), channels = x.shape()[1];
  const int64_t part = w.shape()[1], maps = part * groups;
  Extents shape = {x.shape()[0], maps};
  shape.insert(shape.end(), out.begin(), out.end());
  Tensor y(f64, shape);
  const auto offset = [](const Extents& index, const Extents& extents) {
    int64_t at = 0;
    for (size_t d = 0; d < extents.size(); ++d) at = at * extents[d] + index[d];
    return at;
  };
  for_each_index({x.shape()[0], channels, part}, [&](const Extents& nco) {
    const int64_t map = nco[1] / (channels / groups) * part + nco[2];
    for_each_index(in, [&](const Extents& i) {
      for_each_index(kernel, [&](const Extents& k) {
        Extents to;
        for (size_t d = 0; d < dims; ++d) {
          to.push_back(i[d] * m.stride[d] + k[d] * m.dilation[d] - m.padding[d]);
          if (to[d] < 0 || to[d] >= out[d]) return;
        }
        at(y, (nco[0] * maps + map) * numel_of(out) + offset(to, out)) +=
            x.at((nco[0] * channels + nco[1]) * numel_of(in) + offset(i, in)) *
            w.at((nco[1] * part + nco[2]) * numel_of(kernel) + offset(k, kernel));
      });
    });
  });
  return {y};
}

OpTest conv_transpose_test(int dims, std::vector<Sample> samples) {
  OpTest t;
  t.op = "conv" + std::to_string(dims) + "d_transpose";
  t.samples = std::move(samples);
  t.reference = scattered;
  t.slack = 8;
  return t;
}

OpTest conv1d_transpose_test() {
  return conv_transpose_test(
      1, {sample({2, 3, 5}, {3, 2, 3}), sample({1, 1, 1}, {1, 1, 1}),
          sample({1, 4, 3}, {4, 1, 2}, {.stride = {3}, .padding = {1}, .groups = 2}),
          sample({1, 1, 3}, {1, 2, 2}, {.padding = {0, 1}, .output_padding = {2}, .dilation = {3}}),
          sample({3, 2, 4}, {2, 1, 3}, {.stride = {2}, .output_padding = {1}}, true)});
}

OpTest conv2d_transpose_test() {
  OpTest t = conv_transpose_test(
      2,
      {sample({2, 2, 3, 4}, {2, 3, 3, 2}), sample({1, 1, 1, 1}, {1, 1, 1, 1}),
       sample({1, 2, 3, 2}, {2, 1, 3, 3}, {.stride = {2}, .padding = {1}, .output_padding = {1}}),
       sample({1, 1, 2, 3}, {1, 2, 2, 3},
              {.stride = {3, 2}, .padding = {1, 0, 0, 2}, .output_padding = {2, 0}}),
       sample({1, 2, 3, 2}, {2, 1, 2, 2},
              {.stride = {1, 2}, .padding = {1, 0}, .output_padding = {2, 1}, .dilation = {3}}),
       sample({1, 4, 2, 2}, {4, 3, 2, 1}, {.groups = 2}),
       sample({1, 3, 2, 3}, {3, 1, 3, 3}, {.stride = {2}, .padding = {1}, .groups = 3}),
       sample({0, 2, 2, 2}, {2, 1, 2, 2}),
       sample({3, 2, 2, 2}, {2, 2, 2, 2}, {.stride = {2}}, true),
       sample({1, 1, 2, 2}, {1, 1, 2, 2}, {}, true), sample({0, 1, 2, 2}, {1, 1, 2, 2}, {}, true)});
  const Type x = {f32, {1, 2, 3, 3}, {}}, w = {f32, {2, 2, 3, 3}, {}};
  const std::string huge = std::to_string(INT64_MAX / 2);
  t.bad = {
      {{{f32, {2, 3, 3}, {}}, w},
       {},
       "conv2d_transpose: expects a float tensor [N, C, H, W], got f32[2, 3, 3]"},
      {{x, {f64, {2, 2, 3, 3}, {}}},
       {},
       "conv2d_transpose: expects a filter [C, O / groups, KH, KW] of the input's dtype, got "
       "f64[2, 2, 3, 3]"},
      {{x, w},
       attrs_of({.groups = 0}),
       "conv2d_transpose: the filter f32[2, 2, 3, 3] does not split into 0 groups"},
      {{x, {f32, {3, 2, 3, 3}, {}}},
       {},
       "conv2d_transpose: the input f32[1, 2, 3, 3] has 2 channels, but the filter f32[3, 2, 3, 3] "
       "takes 3"},
      {{{f32, {1, 4, 3, 3}, {}}, {f32, {4, INT64_MAX / 2, 1, 1}, {}}},
       attrs_of({.groups = 4}),
       "conv2d_transpose: the filter f32[4, " + huge + ", 1, 1] has too many channels"},
      {{x, w},
       attrs_of({.output_padding = {1}}),
       "conv2d_transpose: attribute 'output_padding' must be at least 0 and below the stride or "
       "the dilation, not [1]"},
      {{x, w},
       attrs_of({.output_padding = {0, 0, 0}}),
       "conv2d_transpose: attribute 'output_padding' takes one number, or one for the height and "
       "one for the width, not 3"},
      {{x, w},
       attrs_of({.padding = {3}}),
       "conv2d_transpose: the padding leaves no result of the input f32[1, 2, 3, 3] and the filter "
       "f32[2, 2, 3, 3]"},
      {{{f32, {1, 2, 0, 3}, {}}, w},
       {},
       "conv2d_transpose: the padding leaves no result of the input f32[1, 2, 0, 3] and the filter "
       "f32[2, 2, 3, 3]"}};
  return t;
}

OpTest conv3d_transpose_test() {
  return conv_transpose_test(
      3, {sample({1, 2, 2, 1, 2}, {2, 1, 2, 2, 1}), sample({1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}),
          sample({1, 1, 2, 2, 1}, {1, 2, 1, 2, 2},
                 {.stride = {2, 1, 3}, .padding = {0, 1, 0}, .output_padding = {1, 0, 2}}),
          sample({2, 2, 1, 2, 2}, {2, 1, 2, 1, 2}, {.dilation = {2}, .groups = 2}, true)});
}

const AddOpTest kConv1d(conv1d_transpose_test());
const AddOpTest kConv2d(conv2d_transpose_test());
const AddOpTest kConv3d(conv3d_transpose_test());

}  // namespace
}  // namespace fluid::testing::conv_transpose_samples
