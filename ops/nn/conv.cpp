#include "ops/nn/conv.h"

#include "ops/functions.h"
#include "ops/record.h"

namespace fluid {
namespace {

constexpr const char* kSharedAttrs[] = {"stride", "padding", "dilation", "groups"};

int spatial_rank(const Type& type) { return static_cast<int>(type.shape.size()) - 2; }

/// Inserts a height of 1: [N, C, L] -> [N, C, 1, L].
Type with_height(Type type) {
  type.shape.insert(type.shape.begin() + 2, Dim(1));
  return type;
}

Value with_height(Value x, const Loc& loc) {
  return reshape(x, {.to = with_height(Type{x.dtype(), x.shape(), {}})}, loc);
}

/// Converts the attributes of a 1-d convolution to those of a 2-d convolution with height 1.
Attrs with_height(const Attrs& attrs) {
  Attrs tall = conv_attrs_of(attrs);
  for (const auto& [name, along_height] :
       {std::pair("stride", 1), {"padding", 0}, {"dilation", 1}}) {
    std::vector<int64_t> list;
    for (const int64_t n : attrs.get<std::vector<int64_t>>(name)) {
      list.push_back(along_height);
      list.push_back(n);
    }
    tall.set(name, list);
  }
  return tall;
}

/// Records op "conv2d" or "conv3d" with suffix `suffix`: "", "_grad_input" or "_grad_filter".
/// A gradient op has its result type, `result`, as attribute `type_name`. For the forward op,
/// `type_name` is null.
Value record_op(const std::string& suffix, Value a, Value b, const Attrs& attrs,
                const char* type_name, const Type& result, const Loc& loc) {
  ir::Graph& g = *a.op()->graph();
  const int dims = spatial_rank(a.type());
  Attrs all = dims == 1 ? with_height(attrs) : conv_attrs_of(attrs);
  if (type_name != nullptr) all.set(type_name, dims == 1 ? with_height(result) : result);
  const std::string op = (dims == 3 ? "conv3d" : "conv2d") + suffix;
  if (dims > 1) return record(g, op, {a, b}, all, loc)[0];
  const Value y = record(g, op, {with_height(a, loc), with_height(b, loc)}, all, loc)[0];
  Type flat{y.dtype(), y.shape(), {}};
  flat.shape.erase(flat.shape.begin() + 2);
  return reshape(y, {.to = flat}, loc);
}

}  // namespace

void require_taps(const InferCtx& c, const Type& filter) {
  for (size_t d = 2; d < filter.shape.size(); ++d) {
    const int64_t taps = filter.shape[d].size;
    c.require(taps >= 1 && taps <= kMaxWindow, "the filter " + filter.str() +
                                                   " must have between 1 and " +
                                                   std::to_string(kMaxWindow) + " taps per side");
  }
}

Type conv_type(const InferCtx& c, const Type& input, const Type& filter, int dims) {
  const int64_t groups = c.attr<int64_t>("groups");
  const Shape& x = input.shape;
  const Shape& w = filter.shape;
  require_spatial_input(c, input, dims);
  c.require(filter.dtype == input.dtype && w.size() == x.size() && !w.has_batch(),
            "expects a filter [O, C / groups, " + spatial_names(dims, "K") +
                "] of the input's dtype, got " + filter.str());
  c.require(groups >= 1, "attribute 'groups' must be 1 or more, not " + std::to_string(groups));
  int64_t channels = 0;
  const bool fits = !__builtin_mul_overflow(w[1].size, groups, &channels);
  c.require(fits && channels == x[1].size, "the input " + input.str() + " has " + x[1].str() +
                                               " channels, but the filter " + filter.str() +
                                               " takes " + std::to_string(channels));
  c.require(w[0].size % groups == 0, "the filter " + filter.str() + " does not split into " +
                                         std::to_string(groups) + " groups");
  require_taps(c, filter);
  require_window_attrs(c, dims);
  return {input.dtype, window_output_shape(c, x, conv_window(c.attrs(), w), w[0]), {}};
}

WindowAxes conv_window(const Attrs& attrs, const Shape& filter) {
  std::vector<int64_t> kernel;
  for (size_t d = 2; d < filter.size(); ++d) kernel.push_back(filter[d].size);
  return window_axes(attrs, kernel);
}

Cost conv_cost(const Type& filter, const Type& output) {
  double taps = 1;
  for (size_t d = 1; d < filter.shape.size(); ++d) {
    taps *= static_cast<double>(filter.shape[d].size);
  }
  return {.flops = 2.0 * static_cast<double>(output.shape.numel().size) * taps};
}

std::vector<AttrDef> conv_attrs(int dims, std::vector<AttrDef> more) {
  const std::string each = "one " + one_per_dimension_text(dims);
  std::vector<AttrDef> attrs = {
      {"stride", std::vector<int64_t>{1}, "stride of the window: " + each},
      {"padding", std::vector<int64_t>{0}, "zero padding: " + padding_lengths_text(dims)},
      {"dilation", std::vector<int64_t>{1}, "spacing of the filter's taps: " + each},
      {"groups", int64_t{1},
       "number of groups; a filter sees only the input channels of its group"}};
  attrs.insert(attrs.end(), more.begin(), more.end());
  return attrs;
}

Attrs conv_attrs_of(const Attrs& attrs) {
  Attrs shared;
  for (const char* name : kSharedAttrs) shared.set(name, *attrs.find(name));
  return shared;
}

Expr channel_in_group(const Expr& other, int64_t other_size, const Expr& i, int64_t size,
                      int64_t groups) {
  if (groups == 1) return i;
  return scalar::floordiv(other, Expr::index(other_size)) * static_cast<double>(size) + i;
}

Value record_conv(Value x, Value w, const Attrs& attrs, const Loc& loc) {
  return record_op("", x, w, attrs, nullptr, {}, loc);
}

Value record_conv_grad_input(Value dy, Value w, const Type& input, const Attrs& attrs,
                             const Loc& loc) {
  return record_op("_grad_input", dy, w, attrs, "input", input, loc);
}

Value record_conv_grad_filter(Value x, Value dy, const Type& filter, const Attrs& attrs,
                              const Loc& loc) {
  return record_op("_grad_filter", x, dy, attrs, "filter", filter, loc);
}

}  // namespace fluid
