#include "tests/support/gpu_convolution_cases.h"

#include <fmt/format.h>

#include "ops/internal_functions.h"
#include "ops/operators.h"
#include "passes/layouts.h"

namespace fluid::testing {
namespace {

constexpr FluidGpuDtype kNumbers[] = {fluid_gpu_f32, fluid_gpu_f16, fluid_gpu_bf16};

void lay(const Values& images, const std::optional<Layout>& layout) {
  for (const Value& v : images) v.op()->results[0].type.layout = layout;
}

/// The epilogue of a convolution.
enum class Follows : uint8_t { nothing, bias, bias_and_relu, sum };

ConvolutionProgram empty_program(DType dtype) {
  ConvolutionProgram made;
  made.program = std::make_unique<LibraryProgram>();
  made.program->dtype = dtype;
  return made;
}

ConvolutionProgram forward(DType dtype, const ConvolutionCase& c, Follows follows) {
  ConvolutionProgram made = empty_program(dtype);
  LibraryProgram& p = *made.program;
  const Value x = p.feed(c.x), y = conv2d(x, p.feed(c.w), c.attrs);
  made.images = {x};
  const auto then = [&](Value v) {
    p.then(v);
    made.images.push_back(v);
    return v;
  };
  then(y);
  if (follows == Follows::sum) {
    const Value addend = p.feed(y.shape());
    made.images.push_back(addend);
    then(y + addend);
  } else if (follows != Follows::nothing) {
    const Value sum = then(y + reshape(p.feed({c.w[0]}), Shape{c.w[0], 1, 1}));
    if (follows == Follows::bias_and_relu) then(relu(sum));
  }
  return made;
}

Shape maps_of(const ConvolutionCase& c) {
  LibraryProgram p;
  return conv2d(p.feed(c.x), p.feed(c.w), c.attrs).shape();
}

ConvolutionProgram data_gradient(DType dtype, const ConvolutionCase& c) {
  ConvolutionProgram made = empty_program(dtype);
  LibraryProgram& p = *made.program;
  const Conv2dAttrs& a = c.attrs;
  const Value dy = p.feed(maps_of(c));
  const Value dx = internal::conv2d_grad_input(
      dy, p.feed(c.w), {a.stride, a.padding, a.dilation, a.groups, Type{dtype, c.x, {}}});
  p.then(dx);
  made.images = {dy, dx};
  return made;
}

ConvolutionProgram filter_gradient(DType dtype, const ConvolutionCase& c) {
  ConvolutionProgram made = empty_program(dtype);
  LibraryProgram& p = *made.program;
  const Conv2dAttrs& a = c.attrs;
  const Value x = p.feed(c.x), dy = p.feed(maps_of(c));
  p.then(internal::conv2d_grad_filter(
      x, dy, {a.stride, a.padding, a.dilation, a.groups, Type{dtype, c.w, {}}}));
  made.images = {x, dy};
  return made;
}

}  // namespace

Convolutions convolutions_of(std::span<const ConvolutionSize> sizes) {
  Convolutions all;
  for (const FluidGpuDirection direction : kDirections) {
    for (const FluidGpuDtype number : kNumbers) {
      for (const bool last : {false, true}) {
        for (const ConvolutionSize& size : sizes) {
          all.push_back(convolution_of(direction, number, last, size));
        }
      }
    }
  }
  return all;
}

Convolutions followed_convolutions(const ConvolutionSize& size) {
  Convolutions all;
  for (const FluidGpuDtype number : kNumbers) {
    for (const bool last : {false, true}) {
      FluidGpuConvolution c = convolution_of(fluid_gpu_forward, number, last, size);
      c.bias = 1;
      all.push_back(c);
      c.relu = 1;
      all.push_back(c);
      for (const FluidGpuDirection direction : kDirections) {
        c = convolution_of(direction, number, last, size);
        c.has_addend = 1;
        all.push_back(c);
      }
    }
  }
  return all;
}

std::vector<ConvolutionSize> conformance_sizes() {
  return {{},
          {.images = 1, .channels = 3, .taps = 1, .padding = 0},
          {.stride = 2, .padding = 2},
          {.dilation = 2},
          {.groups = 2},
          {.channels = 6, .filters = 6, .groups = 6}};
}

std::vector<ConvolutionSize> many_sizes() {
  return {{},
          {.channels = 16, .height = 14, .width = 14, .filters = 32},
          {.channels = 3, .height = 31, .width = 31, .filters = 64, .taps = 5, .stride = 2},
          {.channels = 16, .filters = 16, .stride = 2, .padding = 2},
          {.channels = 32, .filters = 24, .taps = 1, .padding = 0},
          {.channels = 16, .height = 20, .width = 20, .filters = 16, .dilation = 2},
          {.channels = 32, .filters = 32, .groups = 4},
          {.channels = 32, .filters = 32, .groups = 32},
          {.images = 64, .channels = 1, .height = 28, .width = 28, .filters = 20, .taps = 5}};
}

void ConvolutionProgram::lay_out() const {
  lay(images, channels_last ? std::optional(fluid::channels_last()) : std::nullopt);
}

void ConvolutionProgram::lay_plain() const { lay(images, std::nullopt); }

std::vector<ConvolutionProgram> convolution_programs() {
  std::vector<ConvolutionProgram> all;
  for (const DType dtype : {f32, f16, bf16}) {
    for (const ConvolutionCase& c : convolution_cases()) {
      for (const bool last : {false, true}) {
        const auto add = [&](const char* what, ConvolutionProgram made) {
          made.name = fmt::format("{} in {}, {} and {}{}", what, name_of(dtype), c.x.str(),
                                  c.w.str(), last ? ", channels last" : "");
          made.channels_last = last;
          all.push_back(std::move(made));
        };
        add("forward", forward(dtype, c, Follows::nothing));
        add("with a bias", forward(dtype, c, Follows::bias));
        add("with a bias and a relu", forward(dtype, c, Follows::bias_and_relu));
        add("added", forward(dtype, c, Follows::sum));
        add("data gradient", data_gradient(dtype, c));
        add("filter gradient", filter_gradient(dtype, c));
      }
    }
  }
  return all;
}

}  // namespace fluid::testing
