// Low-rank adapters: their training against PyTorch (tests/golden/finetune.py), their files, and
// merging.

#include "frontend/lora.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "executor/executor.h"
#include "frontend/files/safetensors.h"
#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "ir/atomic_file.h"
#include "ops/operators.h"
#include "tests/support/all_within.h"
#include "tests/support/errors.h"
#include "tests/support/golden_training.h"
#include "tests/support/temp_dir.h"

namespace fluid::lora_test {
namespace {

using testing::golden_tensor;

constexpr int64_t kSamples = 6, kFeatures = 3, kHidden = 4, kUnits = 2, kSteps = 6;

/// The network of tests/golden/finetune.py, with adapters of rank `rank` unless it is 0.
Program network(int64_t rank) {
  Program net("net");
  const Value x = net.data("x", {kBatch, kFeatures}, f64), y = net.data("y", {kBatch, kUnits}, f64);
  const Value h = tanh(batch_norm(linear(x, {.units = kHidden})));
  const Value z = linear(h, {.units = kUnits});
  const Value loss = mean(square(z - y));
  net.output("loss", loss);
  net.output("z", z);
  minimize(loss, Adam{.lr = 0.05});
  if (rank > 0) lora(net, "fc*", {.rank = rank, .alpha = 3});
  return net;
}

void set_start_values(Executor& exe) {
  testing::set_golden_start(exe, {"fc0.w", "fc0.b", "fc1.w", "fc1.b"});
}

void set_adapters(Executor& exe) {
  exe.set_parameter("fc0.w.lora_a", golden_tensor(4, {kFeatures, 2}));
  exe.set_parameter("fc1.w.lora_a", golden_tensor(5, {kHidden, 2}));
}

void run_steps(Executor& exe) {
  for (uint64_t step = 0; step < kSteps; ++step) {
    exe.run(testing::golden_batch(step, kSamples, kFeatures, kUnits));
  }
}

std::vector<double> values(const Tensor& t) {
  std::vector<double> all;
  for (int64_t i = 0; i < t.numel(); ++i) all.push_back(t.at(i));
  return all;
}

std::vector<double> predictions(Executor& exe) {
  return values(exe.predict({{"x", golden_tensor(300, {kSamples, kFeatures})}})["z"].copy());
}

TEST(Lora, TrainsAsInPyTorch) {
  const TempDir dir;
  Executor exe(network(2), cpu(), {.batch = kSamples});
  set_start_values(exe);
  set_adapters(exe);
  run_steps(exe);
  const std::string merged = dir.file("merged.safetensors");
  exe.save(merged, {.merge_adapters = true});
  const TensorFile file = read_safetensors(merged);
  EXPECT_EQ(file.find("fc0.w.lora_a"), nullptr);
  std::ifstream golden(FLUID_SOURCE_DIR "/tests/golden/finetune.json");
  const auto expected = nlohmann::json::parse(golden).at("lora");
  for (const auto& [name, numbers] : expected.items()) {
    const bool adapter = name.find("lora") != std::string::npos;
    const Tensor ours = adapter ? exe.parameter(name) : *file.find(name);
    SCOPED_TRACE(name);
    testing::expect_all_within(values(ours), numbers.get<std::vector<double>>(), 1e-9);
  }
  // Only the adapters have moments.
  for (const SnapshotVariable& v : exe.snapshot().variables) {
    if (v.kind != VariableKind::optimizer) continue;
    EXPECT_NE(v.name.find(".lora_"), std::string::npos) << v.name;
  }
}

TEST(Lora, SavesOnlyTheAdaptersAndMergesThem) {
  const TempDir dir;
  const std::string base = dir.file("base.safetensors"), adapters = dir.file("a.safetensors"),
                    merged = dir.file("m.safetensors");
  Executor plain(network(0), cpu());
  set_start_values(plain);
  plain.save(base);
  Executor trained(network(2), cpu(), {.batch = kSamples});
  EXPECT_EQ(trained.load(base).loaded.size(), plain.parameters().size());
  testing::expect_all_within(predictions(trained), predictions(plain), 1e-14);  // b is zero
  run_steps(trained);
  trained.save(adapters);
  std::vector<std::string> held;
  for (const auto& [name, tensor] : read_safetensors(adapters).tensors) held.push_back(name);
  std::ranges::sort(held);
  EXPECT_EQ(held, (std::vector<std::string>{"fc0.w.lora_a", "fc0.w.lora_b", "fc1.w.lora_a",
                                            "fc1.w.lora_b"}));
  Program again = network(0);
  lora_from_file(again, adapters);
  Executor loaded(again, cpu());
  loaded.load(base);
  loaded.load(adapters);
  EXPECT_EQ(loaded.load(adapters).kept.size(), plain.parameters().size());
  EXPECT_EQ(predictions(loaded), predictions(trained));
  loaded.save(merged, {.merge_adapters = true});
  plain.load(merged);
  testing::expect_all_within(predictions(plain), predictions(trained), 1e-14);
  expect_user_error([&] { plain.load(adapters); },
                    "the program lacks the low-rank adapters of the file, such as 'fc0.w.lora_a'");
  expect_user_error([&] { lora_from_file(again, base); }, "base.safetensors: the file holds no");
}

TEST(Lora, IsNotAppliedTwice) {
  const TempDir dir;
  const std::string base = dir.file("base.safetensors"), adapters = dir.file("a.safetensors"),
                    merged = dir.file("m.safetensors"), again = dir.file("n.safetensors");
  const std::string message = "the adapters of 'fc0.w' are merged into the weights already";
  Executor plain(network(0), cpu());
  set_start_values(plain);
  plain.save(base);
  Executor trained(network(2), cpu(), {.batch = kSamples});
  trained.load(base);
  run_steps(trained);
  trained.save(adapters);
  trained.save(merged, {.merge_adapters = true});
  expect_user_error([&] { trained.load(merged); }, "m.safetensors: " + message);
  Executor continued(network(2), cpu(), {.batch = kSamples});
  continued.restore(trained.snapshot());
  run_steps(trained);
  expect_user_error([&] { trained.load(merged); }, "m.safetensors: " + message);
  run_steps(continued);
  expect_user_error([&] { continued.load(merged); }, "m.safetensors: " + message);
  continued.save(again, {.merge_adapters = true});
  Executor ancestor(network(2), cpu(), {.batch = kSamples});
  ancestor.load(again);
  expect_user_error([&] { ancestor.load(adapters); }, "a.safetensors: " + message);

  Executor other(network(2), cpu(), {.batch = kSamples});
  other.load(merged);
  const std::vector<double> before = predictions(other);
  expect_user_error([&] { other.load(adapters); }, "a.safetensors: " + message);
  EXPECT_EQ(predictions(other), before) << "nothing was loaded";
  run_steps(other);  // other adapters, to be merged, too
  other.save(again, {.merge_adapters = true});
  const Snapshot snapshot = other.snapshot();
  EXPECT_EQ(snapshot.metadata.merged_adapters.size(), 2U);
  other.load(base);
  other.load(adapters);
  expect_user_error([&] { other.load(merged); }, "m.safetensors: " + message);

  plain.load(again);  // keeps what was merged in both rounds
  plain.save(merged);
  Executor last(network(2), cpu());
  last.load(merged);
  expect_user_error([&] { last.load(adapters); }, message);
  Executor resumed(network(2), cpu(), {.batch = kSamples});
  resumed.restore(snapshot);
  expect_user_error([&] { resumed.load(adapters); }, message);
}

TEST(Lora, AdaptsASharedWeightOnceAndKeepsAHead) {
  Program net("shared");
  const Value x = net.data("x", {kBatch, 3}, f32);
  const Value w = net.parameter("w", {3, 3}, Init::normal(0, 1));
  const Value h = linear(relu(matmul(matmul(x, w), w)), {.units = 1, .name = "head"});
  net.output("y", h);
  minimize(mean(square(h)), SGD{.lr = 0.1});
  lora(net, "w");
  set_parameter_groups(net, {{.pattern = "head", .trainable = true}});
  EXPECT_EQ(lora_adapters(net.ir()).size(), 1U);
  const TempDir dir;
  Executor exe(net, cpu(), {.batch = 4});
  exe.save(dir.file("a.safetensors"));
  EXPECT_EQ(read_safetensors(dir.file("a.safetensors")).tensors.size(), 4U);
}

/// A batch norm and a head that are trained beside adapters stay trained after their file was read.
TEST(Lora, KeepsTrainingWhatItsFileTrained) {
  const TempDir dir;
  const std::string adapters = dir.file("a.safetensors"), again = dir.file("b.safetensors");
  Program first = network(2);
  set_parameter_groups(first, {{.pattern = "fc1.*", .trainable = true},
                               {.pattern = "bn0*", .trainable = true, .freeze_statistics = false}});
  Executor exe(first, cpu(), {.batch = kSamples});
  run_steps(exe);
  exe.save(adapters);
  const auto names = [](const std::string& path) {
    std::vector<std::string> held;
    for (const auto& [name, tensor] : read_safetensors(path).tensors) held.push_back(name);
    return held;
  };
  EXPECT_EQ(names(adapters).size(), 10U);  // 4 factors, fc1.w, fc1.b, gamma, beta and statistics
  const auto expect_kept = [&](const std::string& path) {
    Program next = network(0);
    lora_from_file(next, path);
    Executor more(next, cpu(), {.batch = kSamples});
    more.load(path);
    run_steps(more);
    more.save(again);
    EXPECT_EQ(names(again), names(adapters));
    EXPECT_NE(read_safetensors(again).find("fc1.b")->at(0),
              read_safetensors(adapters).find("fc1.b")->at(0));
  };
  expect_kept(adapters);
  expect_kept(again);
}

/// Semicolons separate the names in a file's metadata.
TEST(Lora, KeepsNamesWithSemicolons) {
  const TempDir dir;
  const std::string path = dir.file("a.safetensors");
  const auto record = [] {
    Program net("net");
    const Value x = net.data("x", {kBatch, kFeatures}, f32);
    const Value w = net.parameter("a;b\\.w", {kFeatures, kUnits}, Init::constant(0.1));
    const Value head = net.parameter("\\;head", {kUnits}, Init::zeros());
    const Value loss = mean(square(matmul(x, w) + head));
    net.output("loss", loss);
    minimize(loss, SGD{.lr = 0.05});
    return net;
  };
  Program first = record();
  lora(first, "a*", {.rank = 1});
  set_parameter_groups(first, {{.pattern = "*head", .trainable = true}});
  Executor exe(first, cpu(), {.batch = 2});
  exe.run({{"x", Tensor::of<float>({2, kFeatures}, std::vector<float>{1, 2, 3, 4, 5, 6})}});
  exe.save(path);
  Program next = record();
  lora_from_file(next, path);
  Executor more(next, cpu(), {.batch = 2});
  more.load(path);
  for (const char* name : {"a;b\\.w.lora_b", "\\;head"}) {
    EXPECT_EQ(values(more.parameter(name)), values(exe.parameter(name))) << name;
  }
}

/// x w and tanh(x w) w^T: adapters replace w in both products.
TEST(Lora, ReachesTransposedProducts) {
  const auto tied = [] {
    Program net("tied");
    const Value x = net.data("x", {kBatch, kFeatures}, f64);
    const Value w = net.parameter("w", {kFeatures, kHidden}, Init::normal(0, 1), {.dtype = f64});
    const Value z = matmul(tanh(matmul(x, w)), w, {.transpose_b = true});
    net.output("z", z);
    net.output("loss", mean(square(z - x)));
    minimize(mean(square(z - x)), Adam{.lr = 0.05});
    return net;
  };
  Program adapted = tied();
  EXPECT_TRUE(lora(adapted, "w", {.rank = 2, .alpha = 3}).empty());
  EXPECT_EQ(lora_adapters(adapted.ir()).size(), 1U);
  const TempDir dir;
  Executor trained(adapted, cpu(), {.batch = kSamples}), plain(tied(), cpu());
  const Batch batch{.size = kSamples,
                    .columns = {{"x", golden_tensor(300, {kSamples, kFeatures})}}};
  const double before = trained.eval(batch)["loss"].item();
  for (uint64_t step = 0; step < kSteps; ++step) trained.run(batch);
  EXPECT_LT(trained.eval(batch)["loss"].item(), before);
  trained.save(dir.file("merged"), {.merge_adapters = true});
  plain.load(dir.file("merged"));
  testing::expect_all_within(predictions(plain), predictions(trained), 1e-14);
}

/// A merged weight would change every value that is computed from it.
TEST(Lora, LeavesOutWeightsThatOtherOpsRead) {
  const auto tied = [] {
    Program net("tied");
    const Value x = net.data("x", {kBatch, 3}, f32);
    const Value w = net.parameter("w", {3, 2}, Init::normal(0, 1));
    const Value v = net.parameter("v", {3, 3}, Init::normal(0, 1));
    const Value z = matmul(tanh(matmul(matmul(x, v), w)), transpose(w));
    net.output("z", z);
    minimize(mean(square(z - x)), SGD{.lr = 0.1});
    return net;
  };
  Program net = tied();
  const std::string reader = "'w', which 'transpose' of lora_test.cpp";
  expect_user_error([&] { lora(net, "w"); }, "lora: adapters cannot replace " + reader);
  expect_user_error([&] { lora(net, "{v,w}"); }, "lora: adapters cannot replace " + reader);
  expect_user_error([&] { lora(net, "w*"); }, "lora: adapters cannot replace " + reader);
  const std::vector<std::string> left_out = lora(net, "*");
  ASSERT_EQ(left_out.size(), 1U);
  EXPECT_TRUE(left_out.front().starts_with(reader)) << left_out.front();
  ASSERT_EQ(lora_adapters(net.ir()).size(), 1U);
  EXPECT_EQ(lora_adapters(net.ir()).front().weight, "v");
  const TempDir dir;
  const std::string path = dir.file("a.safetensors");
  write_safetensors(path, {}, {{std::string(kLoraMetadata), "w:rank=2"}});
  Program from_file = tied();
  expect_user_error([&] { lora_from_file(from_file, path); },
                    "a.safetensors: adapters cannot replace " + reader);

  Program shown = network(0);
  shown.output("w", shown.ir().main().find("param", "fc0.w")->result());
  expect_user_error([&] { lora(shown, "fc0"); }, "'fc0.w', which output 'w' reads, too");
}

TEST(Lora, LeavesOutFactorsOfWeights) {
  Program net("factors");
  const Value x = net.data("x", {kBatch, 3}, f32);
  const Value u = net.parameter("u", {3, 3}, Init::normal(0, 1));
  const Value v = net.parameter("v", {3, 3}, Init::normal(0, 1));
  net.output("z", matmul(tanh(matmul(x, u)), v) + matmul(x, matmul(u, v)));
  expect_user_error([&] { lora(net, "u"); },
                    "lora: adapters cannot replace 'u', which 'matmul' of lora_test.cpp");
  EXPECT_EQ(lora(net, "*").size(), 1U);
  ASSERT_EQ(lora_adapters(net.ir()).size(), 1U);
  EXPECT_EQ(lora_adapters(net.ir()).front().weight, "v");
}

// Layers that are recorded after the adapters of a weight read the weight alone.
TEST(Lora, MergesNoWeightsThatAdaptersDoNotReach) {
  const auto adapted_before = [](auto record) {
    Program net("late");
    const Value x = net.data("x", {kBatch, 3}, f32);
    const Value w = net.parameter("w", {3, 3}, Init::normal(0, 1));
    const Value y = matmul(x, w);
    lora(net, "w", {.rank = 2});
    net.output("z", record(y, w));
    return net;
  };
  const TempDir dir;
  const std::string adapters = dir.file("a.safetensors"), merged = dir.file("m.safetensors");
  Program squared = adapted_before([](Value y, Value w) { return y + sum(square(w)); });
  Executor trained(squared, cpu());
  trained.save(adapters);
  lora_from_file(squared, adapters);
  trained.load(adapters);
  expect_user_error([&] { trained.save(merged, {.merge_adapters = true}); },
                    "merge: adapters cannot replace 'w', which 'square' of lora_test.cpp");
  Executor twice(adapted_before([](Value y, Value w) { return matmul(y, w); }), cpu());
  expect_user_error([&] { twice.save(merged, {.merge_adapters = true}); },
                    "merge: the adapters of 'w' change 1 of its 2 products; call lora() after all "
                    "layers are recorded");
}

TEST(Lora, FillsEqualAdaptersOfTheProgram) {
  const TempDir dir;
  const std::string base = dir.file("base.safetensors"), adapters = dir.file("a.safetensors");
  Executor plain(network(0), cpu());
  plain.save(base);
  Executor trained(network(2), cpu(), {.batch = kSamples});
  trained.load(base);
  run_steps(trained);
  trained.save(adapters);
  Program again = network(2);
  lora_from_file(again, adapters);
  EXPECT_EQ(lora_adapters(again.ir()).size(), 2U);
  Executor loaded(again, cpu());
  loaded.load(base);
  loaded.load(adapters);
  EXPECT_EQ(predictions(loaded), predictions(trained));
  Program other = network(1);
  expect_user_error([&] { lora_from_file(other, adapters); },
                    "a.safetensors: the adapters of 'fc0.w' have rank=2,alpha=3.0, those of the "
                    "program rank=1,alpha=3.0");
}

/// Settings of a weight or layer are not those of its adapters.
TEST(Lora, IsSelectedByItsOwnNames) {
  Program net = network(2);
  const auto attr = [&](const std::string& name, const char* setting, auto fallback) {
    return net.ir().main().find("param", name)->attrs.get_or(setting, fallback);
  };
  set_parameter_groups(net, {{.pattern = "fc0", .trainable = false, .lr_scale = 10},
                             {.pattern = "fc1.w", .trainable = true, .lr_scale = 10},
                             {.pattern = "*", .decay_scale = 0},
                             {.pattern = "fc1.w.lora_a", .trainable = false},
                             {.pattern = "*lora_b", .lr_scale = 3}});
  EXPECT_EQ(attr("fc1.w", "lr_scale", 1.0), 10);
  for (const std::string weight : {"fc0.w", "fc1.w"}) {
    EXPECT_EQ(attr(weight + ".lora_a", "trainable", true), weight == "fc0.w");
    EXPECT_TRUE(attr(weight + ".lora_b", "trainable", true));
    EXPECT_EQ(attr(weight + ".lora_a", "lr_scale", 1.0), 1);
    EXPECT_EQ(attr(weight + ".lora_b", "lr_scale", 1.0), 3);
    EXPECT_EQ(attr(weight + ".lora_b", "decay_scale", 1.0), 1);
  }
}

/// A checkpoint fits the same adapters in any order of calls.
TEST(Lora, ResumesWithTheSameAdapters) {
  const auto adapted = [](const std::vector<std::string>& layers, int64_t rank) {
    Program net = network(0);
    for (const std::string& layer : layers) lora(net, layer, {.rank = rank, .alpha = 3});
    return net;
  };
  Executor exe(adapted({"fc0", "fc1"}, 2), cpu(), {.batch = kSamples});
  run_steps(exe);
  const auto restore = [&](const Program& net) {
    Executor resumed(net, cpu(), {.batch = kSamples});
    resumed.restore(exe.snapshot(), "run");
    EXPECT_EQ(predictions(resumed), predictions(exe));
  };
  restore(adapted({"fc1", "fc0"}, 2));
  restore(adapted({"fc*"}, 2));
  const std::string end =
      "; resume with the same --lora options, or with --adapters and the parameters.safetensors "
      "of the checkpoint";
  const std::string both = "'fc0.w:rank=2,alpha=3.0', 'fc1.w:rank=2,alpha=3.0'";
  expect_user_error([&] { restore(adapted({"fc*"}, 1)); },
                    "run: its adapters differ: the checkpoint has " + both +
                        ", the program 'fc0.w:rank=1,alpha=3.0', 'fc1.w:rank=1,alpha=3.0'" + end);
  expect_user_error([&] { restore(adapted({"fc1"}, 2)); },
                    "only the checkpoint has 'fc0.w:rank=2,alpha=3.0'" + end);
  expect_user_error([&] { restore(network(0)); }, "only the checkpoint has " + both + end);
  Executor plain(network(0), cpu(), {.batch = kSamples});
  expect_user_error(
      [&] { exe.restore(plain.snapshot(), "run"); },
      "run: its adapters differ: only the program has " + both + "; resume without adapters");
}

/// Without Fluid's checksum, square factors are not taken for PyTorch's linear weights.
TEST(Lora, ReadsFilesOfOtherTools) {
  const TempDir dir;
  const std::string adapters = dir.file("a.safetensors");
  Executor trained(network(kFeatures), cpu(), {.batch = kSamples});
  run_steps(trained);
  trained.save(adapters);
  std::string bytes = read_file(adapters);
  const size_t checksum = bytes.find("fluid.checksum");
  ASSERT_NE(checksum, std::string::npos);
  bytes.replace(checksum, 5, "other");
  write_plain(adapters, bytes);
  Executor loaded(network(kFeatures), cpu());
  loaded.load(adapters);
  EXPECT_EQ(values(loaded.parameter("fc0.w.lora_a")), values(trained.parameter("fc0.w.lora_a")));
}

TEST(Lora, PenalizesNoFrozenWeight) {
  Program net = network(0);
  const size_t ops = net.ir().main().ops.size();
  set_parameter_groups(net, {{.pattern = "fc0.w", .l2 = 0.5}});
  EXPECT_GT(net.ir().main().ops.size(), ops);
  lora(net, "fc*", {.rank = 2});
  for (const auto& op : net.ir().main().ops) {
    EXPECT_FALSE(op->attrs.has("penalties")) << op->name;
  }
}

TEST(Lora, RejectsWhatItCannotAdapt) {
  Program net = network(2);
  expect_user_error([&] { lora(net, "fc0"); }, "'fc0.w' has adapters already");
  Program plain = network(0);
  expect_user_error(
      [&] { lora(plain, "bn0"); },
      "pattern 'bn0' matches no weight of a linear layer; there are 'fc0.w', 'fc1.w'");
  expect_user_error([&] { lora(plain, "fc0", {.rank = 0}); }, "rank 0 and alpha 8.0");
  expect_user_error([&] { lora(plain, "fc0", {.rank = 9}); },
                    "rank 9 is above min(in, out) = 3 of 'fc0.w' f64[3, 4]");
  expect_user_error([&] { lora(plain, "fc0", {.alpha = -1}); }, "rank 8 and alpha -1.0");
  const TempDir dir;
  const std::string path = dir.file("a.safetensors");
  write_safetensors(path, {}, {{std::string(kLoraMetadata), "fc9.w:rank=2"}});
  expect_user_error([&] { lora_from_file(plain, path); },
                    "holds adapters of 'fc9.w', which is no weight; there are 'fc0.w', 'fc1.w'");
  write_safetensors(path, {}, {{std::string(kLoraMetadata), "fc0.w"}});
  expect_user_error([&] { lora_from_file(plain, path); }, "'fc0.w' describes no adapters");
  write_safetensors(path, {}, {{std::string(kLoraMetadata), "fc0.w:alpha=nan"}});
  expect_user_error([&] { lora_from_file(plain, path); },
                    "a.safetensors: 'alpha=nan' is neither rank=N nor alpha=X");
}

}  // namespace
}  // namespace fluid::lora_test
