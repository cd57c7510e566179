// Tests the error message when oneDNN fails within a step.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <oneapi/dnnl/dnnl.h>

#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "tests/support/errors.h"
#include "tests/support/training.h"

namespace {

int g_calls_left = -1;  ///< until one fails; negative: none does

}  // namespace

/// Stands before the library's own.
dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream,
                                     int count, const dnnl_exec_arg_t* args) {
  static const auto real = reinterpret_cast<decltype(&dnnl_primitive_execute)>(
      dlsym(RTLD_NEXT, "dnnl_primitive_execute"));
  if (g_calls_left >= 0 && g_calls_left-- == 0) return dnnl_out_of_memory;
  return real(primitive, stream, count, args);
}

namespace fluid::onednn_failure_test {
namespace {

constexpr int64_t kImages = 8;

/// Dilated, so that oneDNN computes them on any CPU, not Winograd's algorithm.
Program two_convolutions() {
  Program net("images");
  Value h = net.data("x", {kBatch, 16, 16, 16}, f32);
  for (int i = 0; i < 2; ++i)
    h = conv2d(h, {.filters = 32, .kernel = 3, .dilation = 2, .act = Act::relu});
  const Value loss = mean(h);
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 0.05});
  return net;
}

Batch images() {
  Tensor x(f32, {kImages, 16, 16, 16});
  std::fill_n(x.as<float>().begin(), x.numel(), 0.5f);
  return {kImages, {{"x", x}}, 0};
}

/// The message when call number `n` of a step fails, "" when the step has fewer.
std::string failure(Executor& exe, int n) {
  g_calls_left = n;
  std::string message;
  try {
    exe.run(images());
  } catch (const DeviceError& e) {
    message = e.what();
  }
  g_calls_left = -1;
  return message;
}

TEST(OnednnFailure, SaysWhetherTheStepWasApplied) {
  Executor exe(two_convolutions(), cpu(), {.batch = kImages});
  const std::vector<std::byte> before = parameter_bytes(exe);
  int failures = 0;
  for (std::string message; !(message = failure(exe, failures)).empty(); ++failures) {
    EXPECT_NE(message.find(".conv2d"), std::string::npos) << message;
    EXPECT_TRUE(states(message, " failed: oneDNN: out of memory; the step was ")) << message;
    const bool applied = message.ends_with("applied in part: start again from saved parameters");
    if (!applied) {
      EXPECT_TRUE(message.ends_with("; the step was not applied")) << message;
      EXPECT_EQ(parameter_bytes(exe), before) << message;
    }
  }
  EXPECT_GE(failures, 4) << "forward and backward of two convolutions";
  EXPECT_NE(parameter_bytes(exe), before) << "the last step ran through";
}

}  // namespace
}  // namespace fluid::onednn_failure_test
