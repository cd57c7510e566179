#include "ops/nn/resize2d.h"

#include "ops/record.h"

namespace fluid {

void require_resize_mode(const InferCtx& c) {
  const auto& mode = c.attr<std::string>("mode");
  c.require(mode == "nearest" || mode == "bilinear",
            "mode must be \"nearest\" or \"bilinear\", not \"" + mode + "\"");
}

Resize2d resize_of(const Attrs& attrs, const Shape& input, const Shape& output) {
  const bool linear = attrs.get<std::string>("mode") == "bilinear";
  return {{input[2].size, output[2].size, linear}, {input[3].size, output[3].size, linear}};
}

Expr ResizeAxis::source_numerator(const Expr& output) const {
  const Expr place = output * Expr::index(2 * in) + Expr::index(in - out);
  return scalar::min(scalar::max(place, Expr::index(0)), Expr::index(2 * out * (in - 1)));
}

Expr ResizeAxis::lower_element(const Expr& output) const {
  if (linear) return scalar::floordiv(source_numerator(output), Expr::index(2 * out));
  return scalar::floordiv(output * Expr::index(in), Expr::index(out));
}

Expr ResizeAxis::upper_element(const Expr& output) const {
  return scalar::min(lower_element(output) + Expr::index(1), Expr::index(in - 1));
}

Expr ResizeAxis::upper_weight(const Expr& output, DType dtype) const {
  const Expr rest = source_numerator(output) - lower_element(output) * Expr::index(2 * out);
  return scalar::cast(rest, dtype) / static_cast<double>(2 * out);
}

int64_t ResizeAxis::max_outputs() const { return ((linear ? 2 : 1) * out + in - 1) / in; }

Expr ResizeAxis::first_output(const Expr& element) const {
  if (!linear) {
    return scalar::floordiv(element * Expr::index(out) + Expr::index(in - 1), Expr::index(in));
  }
  // First output whose source coordinate is greater than e - 1: outputs before it do not read
  // element e.
  const Expr before = element * Expr::index(2 * out) + Expr::index(-out - in);
  return scalar::floordiv(before, Expr::index(2 * in)) + Expr::index(1);
}

Expr ResizeAxis::weight(const Expr& output, const Expr& element, DType dtype) const {
  if (!linear) {
    const Expr reads = scalar::compare(ScalarOp::eq, lower_element(output), element);
    return scalar::select(reads, Expr::constant(dtype, 1), Expr::constant(dtype, 0));
  }
  const Expr away = source_numerator(output) - element * Expr::index(2 * out);
  const Expr near = Expr::index(2 * out) - scalar::max(away, -away);
  return scalar::cast(scalar::max(near, Expr::index(0)), dtype) / static_cast<double>(2 * out);
}

namespace {

std::vector<Expr> resize_body(const LowerCtx& c) {
  const Resize2d r = resize_of(c.attrs(), c.in_type(0).shape, c.out_type().shape);
  const Expr oy = c.out_var(2), ox = c.out_var(3);
  const auto read = [&](const Expr& y, const Expr& x) {
    return c.read(0, {c.out_var(0), c.out_var(1), y, x});
  };
  const Expr top = r.y.lower_element(oy), left = r.x.lower_element(ox);
  if (!r.y.linear) return {read(top, left)};
  const Expr bottom = r.y.upper_element(oy), right = r.x.upper_element(ox);
  const DType dtype = compute_dtype(c.out_type().dtype);
  const Expr fy = r.y.upper_weight(oy, dtype), fx = r.x.upper_weight(ox, dtype);
  const Expr above = (1.0 - fx) * read(top, left) + fx * read(top, right);
  const Expr below = (1.0 - fx) * read(bottom, left) + fx * read(bottom, right);
  return {(1.0 - fy) * above + fy * below};
}

}  // namespace

OpDef resize2d_op() {
  return OpDef{
      .name = "resize2d",
      .doc =
          "Resizes images. Along each axis, `mode` nearest reads element floor(i in / out); "
          "bilinear interpolates linearly at (i + 1/2) in / out - 1/2.",
      .inputs = {{"x", "float [N, C, H, W]"}},
      .attrs = {{"output", std::vector<int64_t>{}, "output size: one number, or height and width",
                 true},
                {"mode", std::string("nearest"), "nearest or bilinear"}},
      .outputs = {{"y", "[N, C, OH, OW]"}},
      .infer =
          [](const InferCtx& c) {
            require_resize_mode(c);
            return std::vector{infer_adaptive(c, c.in(0))};
          },
      .grad = GradFn([](const GradCtx& c) {
        return record(*c.op().graph(), "resize2d_grad", {c.dout(0)},
                      {{"input", c.in(0).type()}, {"mode", c.attr<std::string>("mode")}},
                      c.op().loc);
      }),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost =
          [](const CostCtx& c) {
            const bool linear = c.attrs.get<std::string>("mode") == "bilinear";
            return Cost{.flops = c.numel_out() * (linear ? 14 : 1)};
          },
      .in_place = {},
      .lower = Map{resize_body},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
