#include "executor/gpu_driver/gpu_task.h"

#include <fmt/format.h>

#include "executor/device/bytes_text.h"

namespace fluid {
namespace {

constexpr const char* kNumbers[] = {"f64", "f32", "f16", "bf16"};

struct Said {
  bool is_so;
  const char* words;
};

std::string joined(std::string text, std::initializer_list<Said> all) {
  for (const auto& [is_so, words] : all) {
    if (is_so) text += fmt::format(", {}", words);
  }
  return text;
}

std::string words(const FluidGpuMatmul& p) {
  std::string text = fmt::format("{} {} x {} of {}", kNumbers[p.operands], p.m, p.n, p.k);
  if (p.count > 1) text += fmt::format(", {} of them", p.count);
  if (p.result != p.operands) text += fmt::format(" to {}", kNumbers[p.result]);
  return joined(std::move(text), {{p.operands == fluid_gpu_f32 && p.tf32 != 0, "TF32"},
                                  {p.transpose_a != 0, "transposed a"},
                                  {p.transpose_b != 0, "transposed b"},
                                  {p.has_addend != 0, "added"},
                                  {p.bias != 0, "with bias"},
                                  {p.relu != 0, "with relu"}});
}

std::string words(const FluidGpuConvolution& c) {
  constexpr const char* kDirections[] = {"", "data gradient of ", "filter gradient of "};
  std::string text = fmt::format("{}{} {} x {} x {} x {} by {} x {} x {}", kDirections[c.direction],
                                 kNumbers[c.dtype], c.images, c.channels, c.height, c.width,
                                 c.filters, c.filter_height, c.filter_width);
  if (c.groups > 1) text += fmt::format(", {} groups", c.groups);
  return joined(std::move(text), {{c.dtype == fluid_gpu_f32 && c.tf32 != 0, "TF32"},
                                  {c.channels_last != 0, "channels last"},
                                  {c.has_addend != 0, "added"},
                                  {c.bias != 0, "with bias"},
                                  {c.relu != 0, "with relu"}});
}

std::string key(const FluidGpuMatmul& p) {
  return fmt::format("product {}, rows {} {} {}, matrices {} {} {}", words(p), p.a_row_stride,
                     p.b_row_stride, p.result_row_stride, p.a_matrix_stride, p.b_matrix_stride,
                     p.result_matrix_stride);
}

std::string key(const FluidGpuConvolution& c) {
  return fmt::format("convolution {}, stride {} {}, dilation {} {}, padding {} {}", words(c),
                     c.stride[0], c.stride[1], c.dilation[0], c.dilation[1], c.padding[0],
                     c.padding[1]);
}

}  // namespace

std::string task_text(const GpuTask& task) {
  return std::visit([](const auto& t) { return words(t); }, task);
}

std::string rejection_message(std::string_view kernel, const GpuTask& task, int64_t workspace,
                              std::string_view why) {
  return fmt::format("{} cannot compute {} with a workspace of {}{}", kernel, task_text(task),
                     bytes_text(static_cast<double>(workspace)),
                     why.empty() ? "" : fmt::format(" ({})", why));
}

std::string task_key(const GpuTask& task) {
  return std::visit([](const auto& t) { return key(t); }, task);
}

}  // namespace fluid
