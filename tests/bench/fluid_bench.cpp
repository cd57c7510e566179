// Benchmarks one workload on Fluid:
//   fluid_bench WORK [CACHE_DIR [PLACE]]  measures steps whenever stdin has a line
//   fluid_bench WORK --save FILE          writes the program to a file, for fluidrun plan
//   fluid_bench WORK --kernels CACHE_DIR [PLACE]  prints the calls of a step as JSON, for
//   kernels.py
// The protocol and the steps are those of torch_peer.py: feed the batch, run, fetch the loss or the
// result as a number. On a GPU, the batch is copied to the device once. Every step is one CUDA
// graph, and the host waits for its outputs.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string_view>

#include "executor/host/measure_rates.h"
#include "executor/host/target_description.h"
#include "frontend/examples/alexnet.h"
#include "frontend/examples/bert_tiny.h"
#include "frontend/examples/char_gpt.h"
#include "frontend/examples/dlrm.h"
#include "frontend/examples/lstm_text.h"
#include "frontend/examples/mobilenet_v3_small.h"
#include "frontend/examples/resnet.h"
#include "frontend/fluid.h"

namespace fl = fluid;
using Clock = std::chrono::steady_clock;

namespace {

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

fl::Tensor uniform(std::vector<int64_t> shape, float low, float high) {
  static std::mt19937 generator(1);
  std::uniform_real_distribution<float> distribution(low, high);
  fl::Tensor t(fl::f32, std::move(shape));
  for (float& v : t.as<float>()) v = distribution(generator);
  return t;
}

fl::Tensor labels(int64_t n) {
  fl::Tensor t(fl::i64, {n});
  for (int64_t i = 0; i < n; ++i) t.as<int64_t>()[static_cast<size_t>(i)] = i * 7 % 10;
  return t;
}

struct Work {
  fl::Program program;
  fl::Batch batch;
  int steps = 50;
  bool infer = false;
  std::vector<std::pair<std::string, fl::Tensor>> values = {};  ///< parameters to set
};

Work linear_regression() {
  Work w{fl::Program("linear_regression"), {}, 500};
  auto x = w.program.data("x", {fl::kBatch, 2}, fl::f32);
  auto y = w.program.data("y", {fl::kBatch, 1}, fl::f32);
  auto loss = fl::mean(fl::mse_loss(fl::linear(x, {.units = 1}), y));
  w.program.output("loss", loss);
  fl::minimize(loss, fl::Adam{.lr = 0.1});
  const int64_t n = 1'000'000;
  fl::Tensor xs = uniform({n, 2}, -5, 5), ys(fl::f32, {n, 1});
  std::mt19937 generator(2);
  std::normal_distribution<float> noise(0, 2);
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
    ys.as<float>()[i] =
        2 * xs.as<float>()[2 * i] - 3 * xs.as<float>()[2 * i + 1] + 10 + noise(generator);
  }
  w.batch = {.size = n, .columns = {{"x", xs}, {"y", ys}}, .id = 1};
  return w;
}

fl::Value seed_cnn_logits(fl::Value image) {
  auto h =
      fl::max_pool2d(fl::conv2d(image, {.filters = 32, .kernel = 3}), {.kernel = 2, .stride = 2});
  h = fl::max_pool2d(fl::conv2d(h, {.filters = 64, .kernel = 5}), {.kernel = 2, .stride = 2});
  h = fl::flatten(fl::adaptive_max_pool2d(fl::dropout2d(h, {.p = 0.1}), {.output = 1}));
  return fl::linear(fl::linear(h, {.units = 32, .act = fl::Act::relu}), {.units = 10});
}

Work seed_cnn(bool infer) {
  const int64_t n = infer ? 1 : 128;
  Work w{fl::Program("seed_cnn"), {}, infer ? 500 : 50, infer};
  auto image = w.program.data("image", {fl::kBatch, 1, 32, 32}, fl::f32);
  auto logits = seed_cnn_logits(image);
  w.batch = {.size = n, .columns = {{"image", uniform({n, 1, 32, 32}, 0, 1)}}};
  if (infer) {
    w.program.output("result", fl::sum(logits));
    return w;
  }
  auto label = w.program.data("label", {fl::kBatch}, fl::i64);
  auto loss = fl::mean(fl::softmax_cross_entropy(logits, label));
  w.program.output("loss", loss);
  fl::minimize(loss, fl::Adam{.lr = 0.02});
  w.batch.columns.emplace_back("label", labels(n));
  return w;
}

Work fluid_mnist() {
  Work w{fl::Program("fluid_mnist"), {}};
  auto image = w.program.data("image", {fl::kBatch, 1, 28, 28}, fl::f32);
  auto label = w.program.data("label", {fl::kBatch}, fl::i64);
  auto h = image;
  for (int i = 0; i < 2; ++i) {
    h = fl::conv2d(h, {.filters = 20, .kernel = 5, .padding = 2, .act = fl::Act::relu});
    h = fl::max_pool2d(h, {.kernel = 2, .stride = 2});
  }
  auto loss = fl::mean(fl::softmax_cross_entropy(fl::linear(fl::flatten(h), {.units = 10}), label));
  w.program.output("loss", loss);
  fl::minimize(loss, fl::SGD{.lr = 0.01});
  w.batch = {.size = 100,
             .columns = {{"image", uniform({100, 1, 28, 28}, 0, 1)}, {"label", labels(100)}}};
  return w;
}

template <class Optimizer>
Work classifier(int64_t n, int64_t side, fl::Value (*logits)(fl::Value), Optimizer optimizer) {
  Work w{fl::Program("classifier"), {}, 3};
  auto image = w.program.data("image", {fl::kBatch, 3, side, side}, fl::f32);
  auto label = w.program.data("label", {fl::kBatch}, fl::i64);
  auto loss = fl::mean(fl::softmax_cross_entropy(logits(image), label));
  w.program.output("loss", loss);
  fl::minimize(loss, optimizer);
  w.batch = {.size = n,
             .columns = {{"image", uniform({n, 3, side, side}, 0, 1)}, {"label", labels(n)}}};
  return w;
}

/// Inference of one image.
Work one_image(int64_t side, fl::Value (*logits)(fl::Value)) {
  Work w{fl::Program("one_image"), {}, 50, true};
  auto image = w.program.data("image", {fl::kBatch, 3, side, side}, fl::f32);
  w.program.output("result", fl::sum(logits(image)));
  w.batch = {.size = 1, .columns = {{"image", uniform({1, 3, side, side}, 0, 1)}}};
  return w;
}

/// Inference of one text, by a network as large as BERT-Small (Turc et al., "Well-read students
/// learn better", 2019).
Work bert_small_infer() {
  const BertConfig config = {.layers = 4, .heads = 8, .width = 512, .length = 128};
  Work w{fl::Program("one_text"), {}, 50, true};
  const auto text = w.program.data("text", {fl::kBatch, config.length}, fl::u8);
  w.program.output("result", fl::sum(bert_tiny(w.program, text, config)));
  fl::Tensor bytes(fl::u8, {1, config.length});
  for (int64_t i = 0; i < config.length; ++i)
    bytes.as<uint8_t>()[static_cast<size_t>(i)] = static_cast<uint8_t>(1 + 37 * i % 255);
  w.batch = {.size = 1, .columns = {{"text", bytes}}};
  return w;
}

Work alexnet_b64() {
  return classifier(
      64, 227, [](fl::Value x) { return alexnet(x); }, fl::AdamW{.lr = 1e-4});
}

Work resnet18_work(int64_t batch) {
  return classifier(
      batch, 32, [](fl::Value x) { return resnet18(x); },
      fl::Momentum{.lr = 0.1, .momentum = 0.9, .weight_decay = 5e-4});
}

/// A byte-level model: `network` maps text u8 [batch, length] to logits [batch, length, 256].
template <class Network, class Optimizer>
Work byte_model(int64_t batch, int64_t length, int steps, const Network& network,
                const Optimizer& optimizer) {
  Work w{fl::Program("byte_model"), {}, steps};
  auto text = w.program.data("text", {fl::kBatch, length}, fl::u8);
  auto target = w.program.data("target", {fl::kBatch, length}, fl::u8);
  auto loss = fl::mean(fl::softmax_cross_entropy(network(w.program, text), target));
  w.program.output("loss", loss);
  fl::minimize(loss, optimizer);
  fl::Tensor bytes(fl::u8, {batch, length});
  std::mt19937 generator(1);
  for (uint8_t& byte : bytes.as<uint8_t>()) byte = static_cast<uint8_t>(generator() % 256);
  w.batch = {.size = batch, .columns = {{"text", bytes}, {"target", bytes}}};
  return w;
}

Work char_gpt_b4() {
  const CharGptConfig config;
  const auto network = [&](fl::Program& net, fl::Value text) {
    return char_gpt(net, text, config);
  };
  return byte_model(4, config.length, 3, network, fl::AdamW{.lr = 1e-3});
}

Work lstm_text_b32() {
  const LstmTextConfig config;
  const auto network = [&](fl::Program&, fl::Value text) {
    fl::Values states;
    return lstm_text(text, config, states);
  };
  return byte_model(32, config.length, 5, network, fl::Adam{.lr = 2e-3});
}

Work dlrm_b256() {
  const DlrmConfig config;
  constexpr int64_t kBatch = 256;
  Work w{fl::Program("dlrm"), {}};
  fl::minimize(record_dlrm(w.program, config), fl::SGD{.lr = 0.1});
  const int64_t columns = config.numeric_features + config.categorical_features;
  fl::Tensor x = uniform({kBatch, columns}, 0, 1), y(fl::f32, {kBatch, 1});
  for (int64_t i = 0; i < kBatch; ++i) {
    y.as<float>()[static_cast<size_t>(i)] = static_cast<float>(i % 2);
    for (int64_t c = config.numeric_features; c < columns; ++c) {
      float& category = x.as<float>()[static_cast<size_t>(i * columns + c)];
      category = std::floor(category * static_cast<float>(config.rows));
    }
  }
  w.batch = {.size = kBatch, .columns = {{"x", x}, {"y", y}}};
  return w;
}

Work table_b4096() {
  constexpr int64_t kRows = 10'000'000, kWidth = 16, kBatch = 4096;
  Work w{fl::Program("table"), {}};
  const fl::Value index = w.program.data("index", {fl::kBatch}, fl::i64);
  const fl::Value target = w.program.data("target", {fl::kBatch, kWidth}, fl::f32);
  const fl::Value rows = fl::embedding(index, {.rows = kRows, .units = kWidth, .sparse = true});
  const fl::Value loss = fl::mean(fl::square(rows - target));
  w.program.output("loss", loss);
  fl::minimize(loss, fl::Adam{});
  fl::Tensor indices(fl::i64, {kBatch});
  const fl::Tensor uniform_indices = uniform({kBatch}, 0, kRows);
  for (int64_t i = 0; i < kBatch; ++i) {
    indices.as<int64_t>()[static_cast<size_t>(i)] = static_cast<int64_t>(uniform_indices.at(i));
  }
  w.batch = {.size = kBatch,
             .columns = {{"index", indices}, {"target", uniform({kBatch, kWidth}, 0, 1)}}};
  return w;
}

Work mobilenet_b32() {
  Work w = classifier(
      32, 224, [](fl::Value x) { return mobilenet_v3_small(x); },
      fl::Momentum{.lr = 0.1, .momentum = 0.9, .weight_decay = 1e-5});
  w.steps = 5;
  return w;
}

/// A matrix product of which one column is an output: copying the whole result to the host would
/// take longer than computing it.
Work matmul() {
  Work w{fl::Program("matmul"), {}, 50, true};
  auto a = w.program.data("a", {fl::kBatch, 200}, fl::f32);
  auto b = w.program.data("b", {200, 10'000}, fl::f32);
  const auto column = fl::slice(fl::matmul(a, b), {.starts = {0}, .stops = {1}, .axes = {1}});
  w.program.output("result", column);
  w.batch = {.size = 10'000,
             .columns = {{"a", uniform({10'000, 200}, 0, 1)}, {"b", uniform({200, 10'000}, 0, 1)}}};
  return w;
}

/// Removes `suffix` from the end of `name`. Returns whether `name` had the suffix.
bool take(std::string& name, const std::string& suffix) {
  if (!name.ends_with(suffix)) return false;
  name.resize(name.size() - suffix.size());
  return true;
}

// Maximum number of rows that are the batch of a product. More rows are constant, like the tokens
// of all sequences.
constexpr int64_t kMostBatchRows = 128;

/// The product that `shape` describes: "MxKxN" multiplies matrices of M x K and K x N elements,
/// "BxMxKxN" B pairs of such matrices. The suffixes "_ta" and "_tb" store an operand transposed.
Work product(std::string shape) {
  const bool tb = take(shape, "_tb"), ta = take(shape, "_ta");
  std::vector<int64_t> extents;
  std::istringstream stream(shape);
  for (std::string extent; std::getline(stream, extent, 'x');)
    extents.push_back(std::stoll(extent));
  if (extents.size() != 3 && extents.size() != 4) throw fl::UserError("no shape '" + shape + "'");
  const int64_t n = extents.back(), k = extents[extents.size() - 2],
                m = extents[extents.size() - 3];
  std::vector<int64_t> a = ta ? std::vector{k, m} : std::vector{m, k};
  std::vector<int64_t> b = tb ? std::vector{n, k} : std::vector{k, n};
  const bool batched = extents.size() == 4;
  for (auto* operand : {&a, &b}) {
    if (batched) operand->insert(operand->begin(), extents.front());
  }
  Work w{fl::Program("product"), {}, 30, true};
  const auto feed = [&](const char* name, const std::vector<int64_t>& extents, bool has_batch) {
    fl::Shape shape(extents.begin(), extents.end());
    if (has_batch) shape[0] = fl::kBatch;
    w.batch.columns.emplace_back(name, uniform(extents, -1, 1));
    return w.program.data(name, shape, fl::f32);
  };
  const bool rows_are_batch = !batched && !ta && m <= kMostBatchRows;
  w.batch.size = rows_are_batch ? m : 1;
  const fl::Value left = feed("a", a, rows_are_batch), right = feed("b", b, false);
  w.program.output("result",
                   fl::sum(fl::matmul(left, right, {.transpose_a = ta, .transpose_b = tb})));
  return w;
}

/// Inference of one row by four linear layers whose weights do not fit in the cache.
Work linear_row() {
  constexpr int64_t kWidth = 4096;
  Work w{fl::Program("linear_row"), {}, 50, true};
  fl::Value h = w.program.data("x", {fl::kBatch, kWidth}, fl::f32);
  for (int i = 0; i < 4; ++i) h = fl::linear(h, {.units = kWidth, .act = fl::Act::relu});
  w.program.output("result", fl::sum(fl::linear(h, {.units = 10})));
  w.batch = {.size = 1, .columns = {{"x", uniform({1, kWidth}, 0, 1)}}};
  return w;
}

/// Repeats the only sample of the batch.
void repeat_sample(Work& w, int64_t n) {
  w.batch.size = n;
  for (auto& [name, column] : w.batch.columns) {
    std::vector<int64_t> shape = column.shape();
    shape[0] = n;
    fl::Tensor all(column.dtype(), shape);
    for (int64_t i = 0; i < n; ++i) {
      std::memcpy(static_cast<std::byte*>(all.data()) + i * column.bytes(), column.data(),
                  static_cast<size_t>(column.bytes()));
    }
    column = all;
  }
}

/// Quantizes the initial weights; with ranges of activations from the batch unless `weights_only`.
void quantize_work(Work& w, bool weights_only) {
  fl::Executor exe(w.program, fl::cpu());
  fl::Dataset data;
  data.columns = w.batch.columns;
  fl::Reader calibration(data, {.batch = w.batch.size});
  fl::QuantizeOptions options;
  if (!weights_only) options.calibration = &calibration;
  fl::QuantizedProgram quantized = fl::quantize(exe, w.program, options);
  w.program = std::move(quantized.program);
  w.values = std::move(quantized.values);
}

/// Returns the workload `name`. The suffixes "_int8" and "_int8_weights" quantize it; "_x32" before
/// them repeats its sample.
Work work_named(std::string name) {
  const bool weights_only = take(name, "_int8_weights");
  if (weights_only || take(name, "_int8")) {
    Work w = work_named(name);
    quantize_work(w, weights_only);
    return w;
  }
  if (take(name, "_x32")) {
    Work w = work_named(name);
    repeat_sample(w, 32);
    w.steps = 5;
    return w;
  }
  if (name.starts_with("product_")) return product(name.substr(std::strlen("product_")));
  if (name == "linear_row") return linear_row();
  if (name == "resnet18_224_image") return one_image(224, [](fl::Value x) { return resnet18(x); });
  if (name == "linear_regression") return linear_regression();
  if (name == "seed_cnn") return seed_cnn(false);
  if (name == "seed_cnn_infer") return seed_cnn(true);
  if (name == "fluid_mnist") return fluid_mnist();
  if (name == "alexnet") return alexnet_b64();
  if (name == "resnet18") return resnet18_work(128);
  if (name == "resnet18_b64") return resnet18_work(64);
  if (name == "char_gpt") return char_gpt_b4();
  if (name == "lstm_text") return lstm_text_b32();
  if (name == "dlrm") return dlrm_b256();
  if (name == "table") return table_b4096();
  if (name == "mobilenet_v3_small") return mobilenet_b32();
  if (name == "matmul") return matmul();
  if (name == "alexnet_image") return one_image(227, [](fl::Value x) { return alexnet(x); });
  if (name == "resnet18_image") return one_image(32, [](fl::Value x) { return resnet18(x); });
  if (name == "resnet50_image") return one_image(224, [](fl::Value x) { return resnet50(x); });
  if (name == "bert_small_infer") return bert_small_infer();
  if (name == "mobilenet_v3_small_image")
    return one_image(224, [](fl::Value x) { return mobilenet_v3_small(x); });
  throw fl::UserError("no workload '" + name + "'");
}

/// Parses and removes the suffixes of `name`, such as "_bf16_micro4" (mixed precision, 4
/// micro-batches), "_tf32" or, as the last one, "_generated" (without library kernels) or "_tuned"
/// (with kernels chosen by timing on the CPU).
fl::ExecutorOptions options_of(std::string& name) {
  fl::ExecutorOptions options;
  options.debug.libraries = !take(name, "_generated");
  options.cpu.tune = take(name, "_tuned");
  for (const int64_t slices : {2, 4}) {
    if (take(name, "_micro" + std::to_string(slices))) options.micro_batches = slices;
  }
  const bool o2 = take(name, "_o2");
  options.gpu.tf32 = take(name, "_tf32");
  for (const auto& [suffix, dtype] : {std::pair("_bf16", fl::bf16), {"_f16", fl::f16}}) {
    if (!take(name, suffix)) continue;
    options.precision.amp =
        fl::AmpOptions{.dtype = dtype, .level = o2 ? fl::AmpLevel::o2 : fl::AmpLevel::o1};
  }
  return options;
}

/// Lower bounds of the time of a profiled step, in milliseconds: its FLOPs and its bytes at the
/// peak rates of the place.
struct Least {
  double arithmetic_ms = 0, memory_ms = 0;
};

Least least(const fl::Executor& exe) {
  const fl::PeakRates rates = exe.peak_rates();
  Least least;
  const fl::Profile profile = exe.profile();
  for (const auto& run : profile.steps.at(0).runs) {
    for (const fl::CallInfo& call : run) {
      if (call.flops > 0) least.arithmetic_ms += 1e3 * call.flops / rates.flops(call.dtype);
      least.memory_ms += 1e3 * call.bytes / rates.bytes_per_second;
    }
  }
  return least;
}

/// Milliseconds per step, measured over `steps` steps.
double time_steps(const std::function<void()>& step, int steps) {
  const auto begin = Clock::now();
  for (int i = 0; i < steps; ++i) step();
  return seconds_since(begin) * 1e3 / steps;
}

/// Milliseconds per step, measured for `seconds` seconds.
double step_for(const std::function<void()>& step, double seconds) {
  const auto begin = Clock::now();
  int steps = 0;
  for (; seconds_since(begin) < seconds; ++steps) step();
  return seconds_since(begin) * 1e3 / steps;
}

void print_ready(const std::string& name, double first_s, const fl::Executor& exe) {
  std::printf("{\"ready\": \"%s\", \"first_s\": %.4f, \"compile_ms\": %.1f, \"arena_bytes\": %lld",
              name.c_str(), first_s, exe.compile_report().compile_ms,
              static_cast<long long>(exe.memory().total));
}

/// A batch with an equal id is not copied to the GPU again.
void keep_batch_on_gpu(Work& w, fl::ExecutorOptions& options) {
  w.batch.id = 1;
  options.gpu.prefetch = false;
}

/// Lower quartile of times: that of a step which other programs hardly disturbed.
double lower_quartile(std::vector<double> values) {
  const auto at = values.begin() + std::ssize(values) / 4;
  std::ranges::nth_element(values, at);
  return *at;
}

/// The calls of a profiled step, with the lower quartiles of their times.
nlohmann::ordered_json calls_of(const fl::ProfiledStep& step) {
  auto calls = nlohmann::ordered_json::array();
  for (size_t r = 0; r < step.runs.size(); ++r) {
    for (size_t c = 0; c < step.runs[r].size(); ++c) {
      const fl::CallInfo& info = step.runs[r][c];
      std::vector<double> ms;
      for (const fl::StepTimes& times : step.times) {
        ms.push_back(static_cast<double>(times.runs[r].calls[c].call.ns()) / 1e6);
      }
      calls.push_back({{"kernel", info.kernel},
                       {"kind", info.kind},
                       {"layout", info.layout},
                       {"dtype", fl::name_of(info.largest_dtype)},
                       {"role", fl::ir::name_of(info.role)},
                       {"layer", info.layer},
                       {"ops", info.ops},
                       {"bytes", info.bytes},
                       {"ms", lower_quartile(ms)}});
    }
  }
  return calls;
}

/// The memory level of a CPU that the arena fits into, and its copy bandwidth there.
nlohmann::ordered_json cpu_memory(double arena_bytes, int threads) {
  return {{"threads", threads},
          {"level", fl::describe_host(threads).memory_level(arena_bytes)},
          {"copy_gbs", fl::copy_bandwidth(arena_bytes, threads) / 1e9}};
}

void print_calls(std::string name, const std::string& cache_dir, fl::Place place) {
  fl::ExecutorOptions options = options_of(name);
  options.cache_dir = cache_dir;
  Work w = work_named(name);
  constexpr int kWarmUp = 2, kMaxSteps = 30;
  const int steps = std::min(w.steps, kMaxSteps);
  if (place != fl::cpu()) keep_batch_on_gpu(w, options);
  options.profile = fl::ProfileOptions{.warm_up = kWarmUp, .steps = steps};
  fl::Executor exe(w.program, place, options);
  for (const auto& [variable, value] : w.values) exe.set_parameter(variable, value);
  for (int i = 0; i < kWarmUp + steps; ++i) {
    (w.infer ? exe.predict(w.batch) : exe.run(w.batch)).for_each_scalar([](const auto&) {});
  }
  const fl::Profile profile = exe.profile();
  const fl::ProfiledStep& step = profile.steps.at(0);
  std::vector<double> ms;
  for (const fl::StepTimes& times : step.times) {
    ms.push_back(static_cast<double>(times.step.ns()) / 1e6);
  }
  const auto arena = static_cast<double>(exe.memory().total);
  nlohmann::ordered_json all = {
      {"step_ms", lower_quartile(ms)}, {"steps", ms.size()}, {"arena_bytes", arena}};
  if (place == fl::cpu()) all.update(cpu_memory(arena, profile.threads));
  all["calls"] = calls_of(step);
  std::printf("%s\n", all.dump().c_str());
}

void serve(std::string name, const std::string& cache_dir, fl::Place place,
           Clock::time_point start) {
  fl::ExecutorOptions options = options_of(name);
  options.cache_dir = cache_dir;
  Work w = work_named(name);
  const bool on_gpu = place != fl::cpu();
  if (on_gpu) {
    keep_batch_on_gpu(w, options);
    w.steps = std::max(w.steps, 50);
    options.profile = fl::ProfileOptions{.warm_up = 1, .steps = 1};
  }
  fl::Executor exe(w.program, place, options);
  for (const auto& [variable, value] : w.values) exe.set_parameter(variable, value);
  if (w.infer) {
    exe.prepare({.predict = {w.batch.size}});
  } else {
    exe.prepare({.train = {w.batch.size}});
  }
  double seen = 0;  // larger outputs are waited for, but not copied to the host
  auto step = [&] {
    const fl::OutputViews outputs = w.infer ? exe.predict(w.batch) : exe.run(w.batch);
    outputs.for_each_scalar([&](const fl::OutputView& o) { seen += o.value.item(); });
  };
  step();
  const double first = seconds_since(start);
  for (int i = 0; i < std::min(10, w.steps); ++i) step();
  print_ready(name, first, exe);
  if (on_gpu) {
    const Least needs = least(exe);
    for (const auto& [what, ms] :
         {std::pair("arithmetic_ms", needs.arithmetic_ms), {"memory_ms", needs.memory_ms}}) {
      // Not finite if the driver does not report its clocks.
      if (std::isfinite(ms)) std::printf(", \"%s\": %.5f", what, ms);
    }
  }
  std::printf("}\n");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    // Lets the clocks of a GPU rise, and the caches of a CPU fill again after other processes ran.
    step_for(step, on_gpu ? 0.2 : 0.1);
    const double ms = on_gpu ? step_for(step, 0.5) : time_steps(step, w.steps);
    std::printf("{\"ms\": %.5f}\n", ms);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto start = Clock::now();
  if (argc < 2) {
    std::fprintf(stderr,
                 "usage: fluid_bench WORK [CACHE_DIR [PLACE]] | WORK --save FILE | WORK --kernels "
                 "CACHE_DIR [PLACE]\n");
    return 1;
  }
  try {
    if (argc > 3 && std::string_view(argv[2]) == "--kernels") {
      print_calls(argv[1], argv[3], fl::parse_place(argc > 4 ? argv[4] : "cpu"));
      return 0;
    }
    if (argc == 4 && std::string_view(argv[2]) == "--save") {
      work_named(argv[1]).program.save(argv[3]);
      return 0;
    }
    serve(argv[1], argc > 2 ? argv[2] : "", fl::parse_place(argc > 3 ? argv[3] : "cpu"), start);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "fluid_bench: %s\n", e.what());
    return 1;
  }
  return 0;
}
