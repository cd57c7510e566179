#include "ops/nn/resize2d.h"

#include "ops/record.h"

namespace fluid {
namespace {

std::optional<ResizeAxis::Mode> resize_mode(const Attrs& attrs) {
  const auto& mode = attrs.get<std::string>("mode");
  if (mode == "nearest") return ResizeAxis::Mode::nearest;
  if (mode == "bilinear") return ResizeAxis::Mode::linear;
  if (mode == "bicubic") return ResizeAxis::Mode::cubic;
  return std::nullopt;
}

std::vector<Expr> resize_body(const LowerCtx& c) {
  const Resize2d r = resize_of(c.attrs(), c.in_type(0).shape, c.out_type().shape);
  const Expr oy = c.out_var(2), ox = c.out_var(3);
  const DType dtype = compute_dtype(c.out_type().dtype);
  Expr y;
  for (int64_t i = 0; i < r.y.taps(); ++i) {
    Expr row;
    for (int64_t j = 0; j < r.x.taps(); ++j) {
      const Expr x =
          c.read(0, {c.out_var(0), c.out_var(1), r.y.element(oy, i), r.x.element(ox, j)});
      if (r.y.mode == ResizeAxis::Mode::nearest) return {x};
      const Expr part = r.x.tap_weight(ox, j, dtype) * x;
      row = row ? row + part : part;
    }
    const Expr part = r.y.tap_weight(oy, i, dtype) * row;
    y = y ? y + part : part;
  }
  return {y};
}

}  // namespace

void require_resize_mode(const InferCtx& c) {
  const auto mode = resize_mode(c.attrs());
  c.require(mode.has_value(), "mode must be \"nearest\", \"bilinear\" or \"bicubic\", not \"" +
                                  c.attr<std::string>("mode") + "\"");
  c.require(*mode != ResizeAxis::Mode::nearest || !c.attr<bool>("align_corners"),
            "align_corners needs mode \"bilinear\" or \"bicubic\"");
}

Resize2d resize_of(const Attrs& attrs, const Shape& input, const Shape& output) {
  const ResizeAxis::Mode mode = resize_mode(attrs).value();
  const bool align = attrs.get<bool>("align_corners");
  return {{input[2].size, output[2].size, mode, align},
          {input[3].size, output[3].size, mode, align}};
}

std::vector<AttrDef> resize_attrs(std::vector<AttrDef> more) {
  more.push_back({"mode", std::string("nearest"), "nearest, bilinear or bicubic"});
  more.push_back({"align_corners", false,
                  "whether the corner elements of x and y coincide; not in mode nearest"});
  return more;
}

OpDef resize2d_op() {
  return OpDef{
      .name = "resize2d",
      .doc =
          "Resizes images, like torch.nn.functional.interpolate. Along each axis, `mode` nearest "
          "reads element floor(i in / out); bilinear and bicubic (coefficient -0.75) interpolate "
          "at (i + 1/2) in / out - 1/2, or with align_corners at i (in - 1) / (out - 1).",
      .inputs = {{"x", "float [N, C, H, W]"}},
      .attrs = resize_attrs({{"output", std::vector<int64_t>{},
                              "output size: one number, or height and width", true}}),
      .outputs = {{"y", "[N, C, OH, OW]"}},
      .infer =
          [](const InferCtx& c) {
            require_resize_mode(c);
            return std::vector{infer_adaptive_pool(c, c.in(0))};
          },
      .grad = GradFn([](const GradCtx& c) {
        return record(*c.op().graph(), "resize2d_grad", {c.dout(0)},
                      {{"input", c.in(0).type()},
                       {"mode", c.attr<std::string>("mode")},
                       {"align_corners", c.attr<bool>("align_corners")}},
                      c.op().loc);
      }),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost =
          [](const CostCtx& c) {
            const Resize2d r = resize_of(c.attrs, c.in[0].shape, c.out[0].shape);
            const auto reads = static_cast<double>(r.y.taps() * r.x.taps());
            return Cost{.flops = c.numel_out() * (reads == 1 ? 1 : 4 * reads)};
          },
      .in_place = {},
      .lower = Map{resize_body},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
