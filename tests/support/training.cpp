#include "tests/support/training.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>

#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "ops/operators.h"
#include "tests/support/data_folder.h"
#include "tests/support/golden.h"

namespace fluid {

int num_kernels(const Executor& exe) {
  const CompileReport report = exe.compile_report();
  return report.kernels + report.cache_hits;
}

Program linear_regression_program(double lr) {
  Program net("linear_regression");
  const Value x = net.data("x", {kBatch, 2}, f32);
  const Value y = net.data("y", {kBatch, 1}, f32);
  const Value loss = mean(mse_loss(linear(x, {.units = 1}), y));
  net.output("loss", loss);
  minimize(loss, Adam{.lr = lr});
  return net;
}

namespace {

void add_outputs(Program& net, const Value& logits, const Value& label) {
  net.output("loss", mean(softmax_cross_entropy(logits, label)));
  net.output("accuracy", accuracy(logits, label));
  net.output("prob", softmax(logits));
}

}  // namespace

Program mnist_fluid_program() {
  Program net("mnist_fluid");
  const Value image = net.data("image", {kBatch, 1, 28, 28}, f32, {.scale = 1 / 255.f});
  const Value label = net.data("label", {kBatch}, i64);
  Value h = image;
  for (int i = 0; i < 2; ++i) {
    h = conv2d(h, {.filters = 20, .kernel = 5, .padding = 2, .act = Act::relu});
    h = max_pool2d(h, {.kernel = 2, .stride = 2});
  }
  add_outputs(net, linear(flatten(h), {.units = 10}), label);
  return net;
}

Program mnist_cnn_program(double dropout) {
  Program net("mnist_cnn");
  const Value image = net.data("image", {kBatch, 1, 28, 28}, f32, {.scale = 1 / 255.f});
  const Value label = net.data("label", {kBatch}, i64);
  Value h = max_pool2d(conv2d(image, {.filters = 32, .kernel = 3}), {.kernel = 2, .stride = 2});
  h = max_pool2d(conv2d(h, {.filters = 64, .kernel = 5}), {.kernel = 2, .stride = 2});
  if (dropout > 0) h = dropout2d(h, {.p = dropout});
  h = flatten(adaptive_max_pool2d(h, {.output = 1}));
  add_outputs(net, linear(linear(h, {.units = 32, .act = Act::relu}), {.units = 10}), label);
  return net;
}

Program stateful_program() {
  Program net("stateful");
  const Value x = net.data("x", {kBatch, 6}, f32);
  const Value y = dropout(batch_norm(linear(x, {.units = 4})), {.p = 0.25});
  net.output("loss", mean(square(linear(y, {.units = 1}))));
  return net;
}

Batch stateful_batch(int64_t n, bool overflows) {
  Tensor x(f32, {n, 6});
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.as<float>()[static_cast<size_t>(i)] = static_cast<float>(std::sin(3.0 * double(i)));
  }
  if (overflows) x.as<float>()[5] = 1e6F;
  return {n, {{"x", x}}, 0};
}

Batch digit_batch(int64_t n) {
  Tensor image(f32, {n, 1, 28, 28}), label(i64, {n});
  const std::vector<double> u = testing::golden_uniform(102, image.numel());
  for (size_t i = 0; i < u.size(); ++i) image.as<float>()[i] = static_cast<float>(u[i]);
  for (int64_t i = 0; i < n; ++i) label.as<int64_t>()[static_cast<size_t>(i)] = i % 10;
  return {.size = n, .columns = {{"image", image}, {"label", label}}, .id = 0};
}

Batch linear_batch(int64_t n) {
  const std::vector<double> x = testing::golden_uniform(100, 2 * n);
  const std::vector<double> noise = testing::golden_uniform(101, 12 * n);
  Tensor xs(f32, {n, 2}), ys(f32, {n, 1});
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
    const double x0 = 10 * x[2 * i] - 5, x1 = 10 * x[2 * i + 1] - 5;
    double sum = 0;
    for (size_t k = 0; k < 12; ++k) sum += noise[12 * i + k];
    xs.as<float>()[2 * i] = static_cast<float>(x0);
    xs.as<float>()[2 * i + 1] = static_cast<float>(x1);
    ys.as<float>()[i] = static_cast<float>(2 * x0 - 3 * x1 + 10 + 2 * (sum - 6));
  }
  return {.size = n, .columns = {{"x", xs}, {"y", ys}}, .id = 1};
}

Batch golden_images(uint64_t step, int64_t n) {
  constexpr size_t kSide = 28, kCell = 4, kCells = 49;
  Tensor image(u8, {n, 1, kSide, kSide}), label(i64, {n});
  const std::vector<double> likely = testing::golden_uniform(199, 10 * kCells);
  const std::vector<double> digit = testing::golden_uniform(200 + step, n);
  const std::vector<double> cells = testing::golden_uniform(300 + step, n * kCells);
  const std::vector<double> noise = testing::golden_uniform(400 + step, image.numel());
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
    const auto truth = static_cast<size_t>(10 * digit[i]);
    label.as<int64_t>()[i] = static_cast<int64_t>(truth);
    for (size_t k = 0; k < kSide * kSide; ++k) {
      const size_t cell = k / kSide / kCell * (kSide / kCell) + k % kSide / kCell;
      const size_t pixel = i * kSide * kSide + k;
      const bool on = likely[truth * kCells + cell] + cells[i * kCells + cell] < 1;
      image.as<uint8_t>()[pixel] = on ? static_cast<uint8_t>(64 + 192 * noise[pixel]) : 0;
    }
  }
  return {.size = n, .columns = {{"image", image}, {"label", label}}};
}

Batch golden_texts(uint64_t step, int64_t n, int64_t length) {
  Tensor text(u8, {n, length}), target(u8, {n, length});
  const std::vector<double> u = testing::golden_uniform(500 + step, n * (length + 1));
  const auto byte = [&](int64_t i, int64_t t) {
    return static_cast<uint8_t>('a' +
                                static_cast<int>(8 * u[static_cast<size_t>(i * (length + 1) + t)]));
  };
  for (int64_t i = 0; i < n * length; ++i) {
    text.as<uint8_t>()[static_cast<size_t>(i)] = byte(i / length, i % length);
    target.as<uint8_t>()[static_cast<size_t>(i)] = byte(i / length, i % length + 1);
  }
  return {.size = n, .columns = {{"text", text}, {"target", target}}};
}

void set_golden_parameters(Executor& exe, const Program& net) {
  double fan_in = 1;
  uint64_t k = 0;
  for (const auto& op : net.ir().main().ops) {
    const std::string& name = op->symbol;
    const bool weight = name.ends_with(".w") || name.ends_with(".u");
    if (!weight && !name.ends_with(".b")) continue;
    const std::vector<int64_t> shape = exe.parameter(name).shape();
    if (weight) {
      fan_in = static_cast<double>(shape.size() == 4 ? shape[1] * shape[2] * shape[3] : shape[0]);
    }
    Tensor value(f64, shape);
    const std::vector<double> numbers = testing::golden_parameter(k++, value.numel(), fan_in);
    std::copy(numbers.begin(), numbers.end(), value.as<double>().begin());
    exe.set_parameter(name, value);
  }
}

std::string mnist_directory() { return data_folder() + "/mnist"; }

std::vector<std::byte> parameter_bytes(Executor& exe) {
  std::vector<std::byte> bytes;
  for (const std::string& name : exe.parameters()) {
    const Tensor t = exe.parameter(name);
    const auto* data = static_cast<const std::byte*>(t.data());
    bytes.insert(bytes.end(), data, data + t.bytes());
  }
  return bytes;
}

namespace {

/// The bytes of every variable that a training step of `batch` samples reads or writes, by name.
std::map<std::string, std::string> variable_bytes(Executor& exe, int64_t batch) {
  const std::string text = exe.text(Mode::train, batch);
  const std::regex source("(param|state|store) \"([^\"]+)\"");
  std::map<std::string, std::string> all;
  for (std::sregex_iterator it(text.begin(), text.end(), source), end; it != end; ++it) {
    const Tensor t = exe.parameter((*it)[2].str());
    all[(*it)[2]].assign(static_cast<const char*>(t.data()), static_cast<size_t>(t.bytes()));
  }
  return all;
}

}  // namespace

std::set<std::string> changed_by_step(Executor& exe, const Batch& batch) {
  const auto before = variable_bytes(exe, batch.size);
  exe.run(batch);
  std::set<std::string> changed;
  for (const auto& [name, bytes] : variable_bytes(exe, batch.size)) {
    if (bytes != before.at(name)) changed.insert(name);
  }
  return changed;
}

}  // namespace fluid
