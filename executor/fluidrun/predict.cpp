#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "executor/executor.h"
#include "executor/fluidrun/command.h"
#include "executor/fluidrun/common.h"
#include "executor/fluidrun/data_flags.h"
#include "executor/fluidrun/elements.h"
#include "executor/fluidrun/print_to.h"
#include "executor/fluidrun/profile_flags.h"
#include "frontend/files/npy.h"
#include "ir/atomic_file.h"
#include "ir/error.h"

namespace fluid {
namespace {

struct PredictFlags {
  std::string program, data, params;
  std::vector<std::string> outputs;
  int64_t batch = 0, draw = 0;
  uint64_t seed = 0;
  PlaceFlags place;
  ProfileFlags profile;
};

/// What a sample's row of scores says: the best class, or all numbers of a short row.
std::string row_text(const Tensor& value, int64_t sample) {
  const int64_t width = value.numel() / value.shape().at(0);
  int64_t best = 0;
  for (int64_t i = 1; i < width; ++i) {
    if (value.at(sample * width + i) > value.at(sample * width + best)) best = i;
  }
  const double score = value.at(sample * width + best);
  if (width == 1 && !is_float(value.dtype())) return element_text(value, sample);
  return width == 1 ? fmt::format("{:.6g}", score) : fmt::format("{} ({:.4f})", best, score);
}

bool is_image(const Tensor& t) {
  const auto& s = t.shape();
  return s.size() >= 3 && s[s.size() - 2] > 1 && s[s.size() - 1] > 1;
}

/// The sample's first channel, two rows of pixels a line of text.
void draw_image(const Tensor& images, int64_t sample) {
  const auto& shape = images.shape();
  const int64_t height = shape[shape.size() - 2], width = shape[shape.size() - 1];
  const int64_t first = sample * (images.numel() / shape[0]);
  const auto pixel = [&](int64_t y, int64_t x) {
    return y < height ? images.at(first + y * width + x) : 0;
  };
  double most = 0;
  for (int64_t i = 0; i < height * width; ++i) most = std::max(most, images.at(first + i));
  constexpr const char* kBlocks[] = {" ", "▀", "▄", "█"};
  for (int64_t y = 0; y < height; y += 2) {
    std::string line;
    for (int64_t x = 0; x < width; ++x) {
      line += kBlocks[(pixel(y, x) > most / 2 ? 1 : 0) + (pixel(y + 1, x) > most / 2 ? 2 : 0)];
    }
    fmt::print("  {}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  }
}

bool is_row_each(const Output& output, int64_t samples) {
  return !output.value.shape().empty() && output.value.shape()[0] == samples;
}

/// Throws UserError when there is nothing to print of a sample.
void check_rows(const Outputs& outputs, int64_t samples) {
  std::string all;
  for (const Output& o : outputs) {
    if (is_row_each(o, samples)) return;
    all += (all.empty() ? "'" : ", '") + o.name + "' " + o.value.str();
  }
  throw UserError("predict needs an output with one row a sample; there is " + all);
}

void print_sample(const Batch& batch, const Outputs& outputs, int64_t sample, bool draw) {
  std::string line;
  for (const Output& o : outputs) {
    if (!is_row_each(o, batch.size)) continue;
    line += fmt::format("{}{} {}", line.empty() ? "" : "  ", o.name, row_text(o.value, sample));
  }
  if (draw) {
    for (const auto& [name, tensor] : batch.columns) {
      if (is_image(tensor)) draw_image(tensor, sample);
    }
  }
  for (const auto& [name, tensor] : batch.columns) {
    if (tensor.shape().size() == 1) line += fmt::format("  [{} {:g}]", name, tensor.at(sample));
  }
  fmt::print("{}\n", line);
}

/// Rows of one output, gathered over the batches for --output.
class Collected {
 public:
  explicit Collected(NamedFile to) : to_(std::move(to)) { check_writable(to_.path); }
  void add(const Outputs& outputs, int64_t samples) {
    const Tensor& value = outputs[to_.name];
    if (!is_row_each(outputs.find(to_.name), samples)) {
      throw UserError("output '" + to_.name + "' is " + value.str() + ", not one row a sample");
    }
    shape_ = value.shape();
    dtype_ = value.dtype();
    samples_ += samples;
    bytes_.append(static_cast<const char*>(value.data()), static_cast<size_t>(value.bytes()));
  }
  void write() {
    shape_[0] = samples_;
    write_npy(to_.path, Tensor::view(dtype_, shape_, bytes_.data()));
  }

 private:
  NamedFile to_;
  std::string bytes_;
  std::vector<int64_t> shape_;
  DType dtype_ = DType::f32;
  int64_t samples_ = 0;
};

int run(const PredictFlags& flags) {
  const Program program = open_program(flags.program);
  std::vector<Collected> collected;
  for (const std::string& text : flags.outputs) {
    collected.emplace_back(named_file(text, "--output"));
  }
  Reader reader = open_reader(program, flags.data, "test", flags.batch, {}, false);
  ExecutorOptions options = executor_options(flags.place, flags.seed);
  set_profile(options, flags.profile);
  Executor executor(program, place_of(flags.place), options);
  std::vector<std::string> feeds;
  for (const auto& [name, tensor] : reader.dataset().columns) feeds.push_back(name);
  executor.prepare({.predict = reader.batch_sizes(), .predict_feeds = feeds});
  for (const std::string& name : executor.left_out(feeds)) {
    print_to(stderr, "output '{}' is left out: it needs a feed that the data does not have\n",
             name);
  }
  load_parameters(executor, flags.params);
  const int64_t printed = flags.draw > 0      ? std::min(flags.draw, reader.samples())
                          : collected.empty() ? reader.samples()
                                              : 0;
  int64_t seen = 0;
  for (const Batch& batch : reader) {
    const Outputs outputs = executor.predict(batch);
    for (Collected& c : collected) c.add(outputs, batch.size);
    if (printed > 0) check_rows(outputs, batch.size);
    for (int64_t i = 0; i < batch.size && seen < printed; ++i, ++seen) {
      print_sample(batch, outputs, i, flags.draw > 0);
    }
    if (collected.empty() && seen == printed) break;
  }
  for (Collected& c : collected) c.write();
  note_initial_parameters(executor, flags.params);
  report_profile(executor, flags.profile);
  return 0;
}

}  // namespace

void add_predict(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("predict", "Compute outputs for each sample of the data");
  const auto flags = std::make_shared<PredictFlags>();
  add_program_argument(*command, flags->program);
  command->add_option("--data", flags->data, "the data, by default its test split")->required();
  command->add_option("--params", flags->params, "the parameters (safetensors)");
  add_batch(*command, flags->batch);
  command->add_option("--draw", flags->draw, "draw the first N samples with what is predicted")
      ->check(must_be_count);
  command
      ->add_option(
          "--output", flags->outputs,
          "write all rows of an output: prob=@prob.npy; may repeat; prints none without --draw")
      ->allow_extra_args(false);
  command->add_option("--seed", flags->seed, "of initial values, without --params")
      ->check(must_be_natural)
      ->capture_default_str();
  add_place_flags(*command, flags->place);
  add_memory_flag(*command, flags->place);
  add_profile_flags(*command, flags->profile);
  command->footer(
      "Example: fluidrun predict mnist_fluid --params mnist.safetensors --data digits --draw "
      "3\n\n" +
      data_help());
  command->callback([&action, flags] { action = [flags] { return run(*flags); }; });
}

}  // namespace fluid
