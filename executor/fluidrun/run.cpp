#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <memory>

#include "executor/executor.h"
#include "executor/fluidrun/command.h"
#include "executor/fluidrun/common.h"
#include "frontend/files/npy.h"
#include "ir/error.h"

namespace fluid {
namespace {

struct RunFlags {
  std::string program, params;
  std::vector<std::string> inputs, outputs, expected;
  double tolerance = 1e-5;
  uint64_t seed = 0;
  PlaceFlags place;
};

using Assignment = std::pair<std::string, std::string>;

Assignment split(const std::string& text, const std::string& flag) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw UserError(flag + " " + text + ": write NAME=...");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

/// The names and paths of NAME=@FILE.
std::vector<Assignment> files_of(const std::vector<std::string>& texts, const std::string& flag) {
  std::vector<Assignment> files;
  for (const std::string& text : texts) {
    const auto [name, value] = split(text, flag);
    if (!value.starts_with('@')) {
      throw UserError(flag + " " + text + ": write " + name + "=@FILE.npy");
    }
    files.emplace_back(name, value.substr(1));
  }
  return files;
}

template <class T>
T number(std::string_view text, const std::string& where) {
  T value = {};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) {
    throw UserError(where + ": '" + std::string(text) + "' is not a number");
  }
  return value;
}

/// "4xf32=1,2,3,4" or "2x2xi64=...": extents, dtype, values in row-major order.
Tensor literal(const std::string& text, const std::string& where) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) {
    throw UserError(where + ": write NAME=4xf32=1,2,3,4 or NAME=@FILE.npy");
  }
  std::vector<std::string> parts = CLI::detail::split(text.substr(0, equals), 'x');
  const std::optional<DType> dtype = dtype_named(parts.back());
  if (!dtype) throw UserError(where + ": no dtype '" + parts.back() + "'");
  parts.pop_back();
  std::vector<int64_t> shape;
  for (const std::string& part : parts) shape.push_back(number<int64_t>(part, where));
  std::vector<double> values;
  for (const std::string& part : CLI::detail::split(text.substr(equals + 1), ',')) {
    values.push_back(number<double>(part, where));
  }
  return Tensor::of<double>(shape, values).cast(*dtype);
}

Batch batch_of(const RunFlags& flags) {
  Batch batch;
  for (const std::string& input : flags.inputs) {
    const auto [name, value] = split(input, "--input");
    Tensor tensor =
        value.starts_with('@') ? read_npy(value.substr(1)) : literal(value, "--input " + input);
    if (batch.find(name) != nullptr) throw UserError("--input " + name + " is given twice");
    if (!tensor.shape().empty()) batch.size = tensor.shape()[0];
    batch.columns.emplace_back(name, std::move(tensor));
  }
  return batch;
}

/// Throws UserError naming the first element that is off by more than the tolerance allows.
void compare(const std::string& name, const Tensor& got, const Tensor& want, double tolerance) {
  if (got.shape() != want.shape()) {
    throw UserError("output '" + name + "' is " + got.str() + ", expected " + want.str());
  }
  for (int64_t i = 0; i < got.numel(); ++i) {
    const double a = got.at(i), b = want.at(i);
    const bool same = a == b || (std::isnan(a) && std::isnan(b));
    if (same || std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b))) continue;
    throw UserError(
        fmt::format("output '{}' element {} is {:.9g}, expected {:.9g}", name, i, a, b));
  }
}

void print(const Output& output) {
  constexpr int64_t kMost = 16;
  std::string text;
  for (int64_t i = 0; i < std::min(output.value.numel(), kMost); ++i) {
    text += fmt::format(" {:.9g}", output.value.at(i));
  }
  fmt::print("{} {}{}{}\n", output.name, output.value.str(), text,
             output.value.numel() > kMost ? " ..." : "");
}

int run(const RunFlags& flags) {
  const Program program = open_program(flags.program);
  const Batch batch = batch_of(flags);
  const std::vector<Assignment> written = files_of(flags.outputs, "--output"),
                                expected = files_of(flags.expected, "--expected");
  if (batch.size == 0) throw UserError("run needs --input with at least one sample");
  Executor executor(program, place_named(flags.place.place),
                    executor_options(flags.place, flags.seed));
  std::vector<std::string> feeds;
  for (const auto& [name, tensor] : batch.columns) feeds.push_back(name);
  executor.prepare({.predict = {batch.size}, .predict_feeds = feeds});
  if (!flags.params.empty()) executor.load(flags.params);
  const Outputs outputs = executor.predict(batch);
  for (const auto& [name, path] : written) outputs[name];  // before any is written: all are there
  for (const auto& [name, path] : written) write_npy(path, outputs[name]);
  for (const auto& [name, path] : expected) {
    compare(name, outputs[name], read_npy(path), flags.tolerance);
  }
  if (written.empty() && expected.empty()) {
    for (const Output& o : outputs) print(o);
  }
  return 0;
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("run", "Run a program once on given inputs");
  command->footer("Example: fluidrun run net.fluid --input x=1x2xf32=1,2 --expected y=@y.npy");
  const auto flags = std::make_shared<RunFlags>();
  add_program_argument(*command, flags->program);
  command->add_option("--input", flags->inputs, "x=4xf32=1,2,3,4 or x=@FILE.npy; may repeat");
  command->add_option("--output", flags->outputs, "write an output: y=@FILE.npy; may repeat");
  command->add_option("--expected", flags->expected, "fail unless an output equals y=@FILE.npy");
  command->add_option("--tolerance", flags->tolerance, "relative, absolute below 1")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--params", flags->params, "the parameters (safetensors)");
  command->add_option("--seed", flags->seed, "of initial values, without --params")
      ->check(must_be_natural);
  add_place_flags(*command, flags->place);
  add_memory_flag(*command, flags->place);
  command->callback([&action, flags] { action = [flags] { return run(*flags); }; });
}

}  // namespace fluid
