#include "ops/nn/resize2d.h"

#include "ops/record.h"

namespace fluid {

void require_mode(const InferCtx& c) {
  const auto& mode = c.attr<std::string>("mode");
  c.require(mode == "nearest" || mode == "bilinear",
            "mode must be \"nearest\" or \"bilinear\", not \"" + mode + "\"");
}

Resize2d resize_of(const Attrs& attrs, const Shape& input, const Shape& output) {
  const bool linear = attrs.get<std::string>("mode") == "bilinear";
  return {{input[2].size, output[2].size, linear}, {input[3].size, output[3].size, linear}};
}

Expr ResizeAxis::numerator(const Expr& i) const {
  const Expr place = i * Expr::index(2 * in) + Expr::index(in - out);
  return scalar::min(scalar::max(place, Expr::index(0)), Expr::index(2 * out * (in - 1)));
}

Expr ResizeAxis::lower(const Expr& i) const {
  if (linear) return scalar::floordiv(numerator(i), Expr::index(2 * out));
  return scalar::floordiv(i * Expr::index(in), Expr::index(out));
}

Expr ResizeAxis::upper(const Expr& i) const {
  return scalar::min(lower(i) + Expr::index(1), Expr::index(in - 1));
}

Expr ResizeAxis::fraction(const Expr& i, DType dtype) const {
  const Expr rest = numerator(i) - lower(i) * Expr::index(2 * out);
  return scalar::cast(rest, dtype) / static_cast<double>(2 * out);
}

int64_t ResizeAxis::reach() const { return ((linear ? 2 : 1) * out + in - 1) / in; }

Expr ResizeAxis::first(const Expr& e) const {
  if (!linear) {
    return scalar::floordiv(e * Expr::index(out) + Expr::index(in - 1), Expr::index(in));
  }
  // The first output whose source coordinate is above e - 1.
  const Expr before = e * Expr::index(2 * out) + Expr::index(-out - in);
  return scalar::floordiv(before, Expr::index(2 * in)) + Expr::index(1);
}

Expr ResizeAxis::weight(const Expr& i, const Expr& e, DType dtype) const {
  if (!linear) {
    const Expr reads = scalar::compare(Scalar::eq, lower(i), e);
    return scalar::select(reads, Expr::constant(dtype, 1), Expr::constant(dtype, 0));
  }
  const Expr away = numerator(i) - e * Expr::index(2 * out);
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
  const Expr top = r.y.lower(oy), left = r.x.lower(ox);
  if (!r.y.linear) return {read(top, left)};
  const Expr bottom = r.y.upper(oy), right = r.x.upper(ox);
  const DType dtype = compute_dtype(c.out_type().dtype);
  const Expr fy = r.y.fraction(oy, dtype), fx = r.x.fraction(ox, dtype);
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
            require_mode(c);
            return std::vector{adaptive_type(c, c.in(0))};
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
