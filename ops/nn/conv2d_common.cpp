#include "ops/nn/conv2d.h"

namespace fluid {
namespace {

constexpr const char* kShared[] = {"stride", "padding", "dilation", "groups"};

}  // namespace

Type conv2d_type(const InferCtx& c, const Type& input, const Type& filter) {
  const int64_t groups = c.attr<int64_t>("groups");
  const Shape& x = input.shape;
  const Shape& w = filter.shape;
  require_nchw(c, input);
  c.require(filter.dtype == input.dtype && w.rank() == 4 && !w.has_batch(),
            "expects a filter [O, C / groups, KH, KW] of the input's dtype, got " + filter.str());
  c.require(groups >= 1, "attribute 'groups' must be 1 or more");
  int64_t channels = 0;
  const bool fits = !__builtin_mul_overflow(w[1].size, groups, &channels);
  c.require(fits && channels == x[1].size, "the input " + input.str() + " has " + x[1].str() +
                                               " channels, but the filter " + filter.str() +
                                               " takes " + std::to_string(channels));
  c.require(w[0].size % groups == 0, "the filter " + filter.str() + " does not split into " +
                                         std::to_string(groups) + " groups");
  c.require(w[2].size >= 1 && w[2].size <= kMaxWindow && w[3].size >= 1 && w[3].size <= kMaxWindow,
            "the filter " + filter.str() + " must have between 1 and " +
                std::to_string(kMaxWindow) + " taps per side");
  require_window_attrs(c);
  return {
      input.dtype, window_output_shape(c, x, window_of(c.attrs(), w[2].size, w[3].size), w[0]), {}};
}

Cost conv2d_cost(const Type& filter, const Type& output) {
  const Shape& w = filter.shape;
  const auto taps = static_cast<double>(w[1].size * w[2].size * w[3].size);
  return {.flops = 2.0 * static_cast<double>(output.shape.numel().size) * taps};
}

std::vector<AttrDef> conv2d_attrs(std::vector<AttrDef> more) {
  std::vector<AttrDef> attrs = {
      {"stride", std::vector<int64_t>{1}, "stride of the window: one number, or height and width"},
      {"padding", std::vector<int64_t>{0},
       "zero padding: one number, height and width, or top, left, bottom, right"},
      {"dilation", std::vector<int64_t>{1},
       "spacing of the filter's taps: one number, or height and width"},
      {"groups", int64_t{1},
       "number of groups; a filter sees only the input channels of its group"}};
  attrs.insert(attrs.end(), more.begin(), more.end());
  return attrs;
}

Attrs conv2d_attrs_of(const Attrs& attrs) {
  Attrs shared;
  for (const char* name : kShared) shared.set(name, *attrs.find(name));
  return shared;
}

Attrs conv2d_attrs_with(const Attrs& attrs, const std::string& name, const Type& type) {
  Attrs shared = conv2d_attrs_of(attrs);
  shared.set(name, type);
  return shared;
}

Expr channel_in_group(const Expr& other, int64_t other_size, const Expr& i, int64_t size,
                      int64_t groups) {
  if (groups == 1) return i;
  return scalar::floordiv(other, Expr::index(other_size)) * static_cast<double>(size) + i;
}

}  // namespace fluid
