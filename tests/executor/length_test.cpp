// Programs with the dimension kLength: steps of several lengths share variables and memory, and
// compute the bits that programs of constant lengths compute.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>

#include "executor/session/prepared_step.h"
#include "frontend/examples/char_gpt.h"
#include "frontend/fluid.h"
#include "tests/support/errors.h"
#include "tests/support/processes.h"
#include "tests/support/temp_dir.h"

namespace fluid::length_test {
namespace {

constexpr int64_t kSamples = 3;
const ExecutorOptions kF64{.threads = 1, .precision = {.dtype = f64}};

/// Records a network for texts of this length.
using Record = std::function<Program(Dim length)>;

Program gpt(Dim length) {
  Program net("gpt");
  const Value loss = record_char_gpt(
      net, {.layers = 2, .heads = 2, .width = 16, .length = 12, .text_length = length});
  minimize(loss, AdamW{.lr = 0.01}, {.clip = {.global_norm = 0.5}});
  return net;
}

Program recurrent(Dim length) {
  Program net("recurrent");
  const Value text = net.data("text", {kBatch, length}, u8);
  const Value target = net.data("target", {kBatch, length}, u8);
  const Value sizes = net.data("sizes", {kBatch}, i64);
  const Value h = embedding(text, {.rows = 256, .units = 6});
  const RecurrentResult lstm0 =
      lstm(h, {.units = 5, .layers = 2, .bidirectional = true, .lengths = sizes});
  const Value logits = linear(lstm0.output, {.units = 256});
  const Value loss = mean(softmax_cross_entropy(logits, target));
  net.output("loss", loss);
  net.output("logits", logits);
  net.output("accuracy", accuracy(logits, target));
  minimize(loss, Momentum{.lr = 0.1});
  return net;
}

/// A batch of `samples` texts of this length; equal arguments give equal batches.
Batch batch_of(const Program& net, int64_t length, uint8_t seed, int64_t samples = kSamples) {
  Batch batch{.size = samples, .columns = {}};
  for (const auto& op : net.ir().main().ops) {
    if (op->name != "data") continue;
    const Type& type = op->results[0].type;
    Tensor column(type.dtype, extents(type.shape.at_length(length), samples));
    for (int64_t i = 0; i < column.numel(); ++i) {
      const auto byte = static_cast<uint8_t>(seed * 31 + i * 7 + op->symbol.size());
      if (type.dtype == u8) column.as<uint8_t>()[static_cast<size_t>(i)] = byte;
      if (type.dtype == i64) column.as<int64_t>()[static_cast<size_t>(i)] = 1 + byte % length;
    }
    batch.columns.emplace_back(op->symbol, std::move(column));
  }
  return batch;
}

void expect_same_bits(const Tensor& a, const Tensor& b, const std::string& what) {
  ASSERT_EQ(a.str(), b.str()) << what;
  EXPECT_EQ(std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())), 0) << what;
}

void expect_same_bits(const OutputViews& a, const OutputViews& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (const OutputView& o : a) expect_same_bits(o.value, b[o.name], what + o.name);
}

using State = std::vector<std::pair<std::string, Tensor>>;

State state_of(Executor& exe) {
  State state;
  for (const SnapshotVariable& v : exe.snapshot().variables)
    state.emplace_back(v.name, v.value.copy());
  return state;
}

/// Executors of the programs for constant lengths.
class ConstantLengths {
 public:
  ConstantLengths(Record record, ExecutorOptions options)
      : record_(std::move(record)), options_(std::move(options)) {}

  /// The executor for this length, with these variables.
  Executor& at(int64_t length, const State& state) {
    const auto [entry, added] = executors_.try_emplace(length, record_(length), cpu(), options_);
    if (added) entry->second.prepare({.train = {kSamples}});
    for (const auto& [name, value] : state) entry->second.set_parameter(name, value);
    return entry->second;
  }

 private:
  Record record_;
  ExecutorOptions options_;
  std::map<int64_t, Executor> executors_;
};

void expect_training_as_constants(const Record& record, const ExecutorOptions& options = kF64) {
  const Program net = record(kLength);
  Executor exe(net, cpu(), options);
  ConstantLengths constants(record, options);
  State state;
  uint8_t step = 0;
  for (const int64_t length : {8, 5, 8, 3, 1, 5}) {
    const std::string what = "step " + std::to_string(step) + ", ";
    const Batch batch = batch_of(net, length, step++);
    Executor& constant = constants.at(length, state);
    expect_same_bits(exe.run(batch), constant.run(batch), what);
    state = state_of(constant);
    for (const auto& [name, value] : state_of(exe)) {
      const auto other = std::ranges::find(state, name, &State::value_type::first);
      ASSERT_NE(other, state.end()) << name;
      expect_same_bits(value, other->second, what + name);
    }
  }
  for (const int64_t length : {2, 3}) {
    Executor& constant = constants.at(length, state);
    const Batch batch = batch_of(net, length, step++);
    expect_same_bits(exe.eval(batch), constant.eval(batch), "eval, ");
    expect_same_bits(exe.predict(batch), constant.predict(batch), "predict, ");
  }
}

TEST(Length, ATransformerTrainsAsWithConstantLengths) { expect_training_as_constants(gpt); }

TEST(Length, AnLstmTrainsAsWithConstantLengths) { expect_training_as_constants(recurrent); }

TEST(Length, MicroBatchesTrainAsWithConstantLengths) {
  ExecutorOptions options = kF64;
  options.micro_batches = 2;
  expect_training_as_constants(gpt, options);
  expect_training_as_constants(recurrent, options);
}

MemoryUse memory_of(const Program& net, const BatchSizes& sizes) {
  Executor exe(net, cpu(), kF64);
  exe.prepare(sizes);
  return exe.memory();
}

TEST(Length, StepsShareOneArena) {
  for (const Record& record : {Record(gpt), Record(recurrent)}) {
    const MemoryUse shared =
        memory_of(record(kLength), {.train = {kSamples}, .lengths = {5, 8, 3}});
    const MemoryUse longest = memory_of(record(8), {.train = {kSamples}});
    int64_t transient = 0;
    for (const int64_t length : {5, 8, 3}) {
      const MemoryUse use = memory_of(record(length), {.train = {kSamples}});
      transient = std::max(transient, use.transient);
      EXPECT_EQ(shared.state, use.state);
    }
    EXPECT_EQ(shared.transient, transient);
    EXPECT_EQ(shared.slots, longest.slots);
    EXPECT_EQ(shared.total, shared.state + shared.slots + shared.transient);
  }
}

TEST(Length, PreparedStepsCompileNothingWhenTheyRun) {
  const Program net = gpt(kLength);
  Executor exe(net, cpu(), {.threads = 1, .strict_shapes = true});
  exe.prepare({.train = {2, 3}, .predict = {1}, .lengths = {4, 6}});
  const double passes = exe.compile_report().passes_ms;
  for (const int64_t length : {4, 6}) {
    for (const int64_t samples : {2, 3}) exe.run(batch_of(net, length, 1, samples));
    EXPECT_EQ(exe.predict(batch_of(net, length, 1, 1))["logits"].str(),
              "f32[1, " + std::to_string(length) + ", 256]");
  }
  EXPECT_EQ(exe.compile_report().passes_ms, passes);
  expect_user_error([&] { exe.run(batch_of(net, 5, 1, 2)); },
                    "run() got a batch of 2 samples of length 5, which was not prepared: call "
                    "prepare({.train = {2}, .lengths = {5}}) first");
  expect_user_error([&] { exe.predict(batch_of(net, 5, 1, 1)); },
                    "prepare({.predict = {1}, .lengths = {5}})");
}

TEST(Length, TheConstructorPreparesAStep) {
  const Program net = gpt(kLength);
  Executor exe(net, cpu(), {.batch = 2, .length = 4, .strict_shapes = true});
  EXPECT_TRUE(exe.run(batch_of(net, 4, 1, 2)).contains("loss"));
  EXPECT_NE(exe.text(Mode::train, 2, 4).find("u8[?, 4]"), std::string::npos);
  expect_user_error([&] { Executor(net, cpu(), {.batch = 2}); },
                    "a step of length 0: the program has the dimension kLength");
}

TEST(Length, IsKeptInFiles) {
  const TempDir folder;
  const Program net = recurrent(kLength);
  for (const char* name : {"net.fluid", "net.fir"}) {
    net.save(folder.file(name));
    const Program loaded = Program::load(folder.file(name));
    EXPECT_EQ(loaded.text(), net.text());
    const Batch batch = batch_of(net, 4, 1);
    Executor exe(loaded, cpu(), kF64), original(net, cpu(), kF64);
    expect_same_bits(exe.run(batch), original.run(batch), name);
  }
}

TEST(Length, AReaderTrainsAndPredicts) {
  const Program net = gpt(kLength);
  const auto reader = [&](int64_t length) {
    return Reader({.columns = batch_of(net, length, 2, 5).columns}, {.batch = 2});
  };
  Reader train = reader(6), validation = reader(4), other = reader(3);
  Trainer trainer(net, cpu(), {.strict_shapes = true});
  const History history = trainer.fit(train, {.epochs = 2, .validation = &validation});
  EXPECT_EQ(history.steps, 6);
  EXPECT_EQ(trainer.predict(other).find("logits")->str(), "f32[5, 3, 256]");
  EXPECT_GT(trainer.evaluate(other).size(), 0U);
}

TEST(Length, AProfileNamesIt) {
  const Program net = gpt(kLength);
  Executor exe(net, cpu(), {.profile = ProfileOptions{.warm_up = 0, .steps = 2}});
  exe.run(batch_of(net, 4, 1));
  ASSERT_EQ(exe.profile().steps.size(), 1U);
  EXPECT_EQ(exe.profile().steps[0].name(), "training step of 3 samples of length 4");
}

/// Feeds with multiples of the length.
Program packed() {
  Program net("packed");
  Dim rows = kLength;
  rows.batch = true;
  net.output("rows", net.data("rows", {rows, 2}, f32) * 2.0);
  net.output("pairs", net.data("pairs", {Dim::of_length(2)}, f32) * 2.0);
  net.output("scores", net.data("scores", {kBatch, kLength, kLength}, f32) * 2.0);
  net.output("plain", net.data("plain", {kBatch}, f32) * 2.0);
  return net;
}

TEST(Length, FollowsFromMultiples) {
  Executor exe(packed(), cpu());
  const auto length = [&](const std::string& feed, const std::vector<int64_t>& shape,
                          int64_t samples) {
    return exe.lengths_of({.size = samples, .columns = {{feed, Tensor(f32, shape)}}});
  };
  EXPECT_EQ(length("rows", {12, 2}, 4), std::vector<int64_t>{3});
  EXPECT_EQ(length("pairs", {10}, 4), std::vector<int64_t>{5});
  EXPECT_EQ(length("scores", {4, 7, 7}, 4), std::vector<int64_t>{7});
  expect_user_error(
      [&] {
        length("rows", {13, 2}, 4);
      },
      "feed 'rows' is f32[13, 2] in a batch of 4; the program takes f32[?L, 2]");
  expect_user_error([&] { length("pairs", {5}, 4); }, "feed 'pairs' is f32[5]");
  expect_user_error(
      [&] {
        length("scores", {4, 7, 6}, 4);
      },
      "feed 'scores' has the length 7, but feed 'scores' has the length 6");
  expect_user_error([&] { length("scores", {4, 7}, 4); }, "feed 'scores' is f32[4, 7]");
  expect_user_error([&] { length("plain", {4}, 4); },
                    "the batch has no feed with a dimension kLength, such as 'rows'");
}

TEST(Length, OfFeedsMustAgree) {
  const Program net = gpt(kLength);
  Executor exe(net, cpu());
  Batch batch = batch_of(net, 4, 1);
  batch.columns[1].second = Tensor(u8, {kSamples, 5});
  const std::string disagree = "feed 'text' has the length 4, but feed 'target' has the length 5";
  expect_user_error([&] { exe.run(batch); }, disagree);
  expect_user_error([&] { exe.eval(batch); }, disagree);
  expect_user_error([&] { exe.predict(batch); }, disagree);
  expect_user_error([&] { exe.run(batch_of(net, 0, 1)); },
                    "feed 'text' is u8[3, 0]: the length of u8[?, L] cannot be 0");
  batch.columns.pop_back();
  expect_user_error([&] { exe.run(batch); }, "feed 'target' is missing: the batch has 'text'");
  expect_user_error([&] { exe.run(Batch{.size = 1, .columns = {}}); },
                    "no feed with a dimension kLength, such as 'text'");
}

TEST(Length, IsPreparedForProgramsThatHaveIt) {
  Executor exe(gpt(kLength), cpu()), constant(gpt(8), cpu());
  expect_user_error([&] { exe.prepare({.train = {2}}); },
                    "cannot prepare a step of length 0: the program has the dimension kLength");
  expect_user_error(
      [&] {
        exe.prepare({.train = {2}, .lengths = {3, -1}});
      },
      "a step of length -1");
  expect_user_error([&] { exe.text(Mode::eval, 2); }, "a step of length 0");
  expect_user_error([&] { constant.prepare({.train = {2}, .lengths = {3}}); },
                    "cannot prepare a step of length 3: the program has no dimension kLength");
  EXPECT_TRUE(constant.lengths_of(batch_of(gpt(8), 8, 1)).empty());
}

/// A text may be shorter than the table of positions, not longer.
TEST(Length, LongerTextsThanTheTableOfPositionsAreRejected) {
  const Program net = gpt(kLength);
  Executor exe(net, cpu());
  EXPECT_TRUE(exe.run(batch_of(net, 12, 1)).contains("loss"));
  expect_user_error([&] { exe.run(batch_of(net, 13, 1)); },
                    "embedding: index 12 is out of range [0, 12); the step was not applied");
}

TEST(Length, OfAStepThatIsTooShortForAnOp) {
  Program net("first_five");
  net.output("y", slice(net.data("x", {kBatch, kLength}, f32),
                        {.starts = {0}, .stops = {5}, .axes = {1}}));
  Executor exe(net, cpu());
  EXPECT_EQ(exe.predict({{"x", Tensor(f32, {2, 7})}})["y"].str(), "f32[2, 5]");
  expect_user_error(
      [&] {
        exe.predict({{"x", Tensor(f32, {2, 3})}});
      },
      "slice: computes (f32[?, 3]) with the length 3, not (f32[?, 5])");
}

/// This rank's half of a batch of four samples.
Batch shard_of(const Program& net, const World& world, int64_t length) {
  Batch shard = batch_of(net, length, 1, 4);
  const int64_t size = 4 / world.size;
  for (auto& [name, column] : shard.columns) {
    const int64_t row = column.bytes() / 4;
    auto* begin = static_cast<std::byte*>(column.data()) + world.rank * size * row;
    std::vector<int64_t> shape = column.shape();
    shape[0] = size;
    column = Tensor::view(column.dtype(), shape, begin).copy();
  }
  shard.size = size;
  shard.first = world.rank * size;
  shard.global_batch_size = 4;
  return shard;
}

TEST(Length, RanksTrainAsOne) {
  const auto losses = [](const World& world) {
    const Program net = gpt(kLength);
    ExecutorOptions options = kF64;
    options.distributed.world = world;
    Executor exe(net, cpu(), options);
    std::vector<double> all;
    for (const int64_t length : {8, 5, 8, 3})
      all.push_back(exe.run(shard_of(net, world, length))["loss"].item());
    return all;
  };
  const std::vector<double> alone = losses({});
  const std::vector<std::string> results = testing::Ranks(2, [&](const World& world) {
                                             std::string text;
                                             for (const double loss : losses(world))
                                               text += fmt::format("{:.12f} ", loss);
                                             return text;
                                           }).results();
  std::string expected;
  for (const double loss : alone) expected += fmt::format("{:.12f} ", loss);
  EXPECT_EQ(results[0], expected);
  EXPECT_EQ(results[1], expected);
}

TEST(Length, IsEqualOnAllRanks) {
  const std::vector<std::string> results =
      testing::Ranks(2, [](const World& world) {
        const Program net = gpt(kLength);
        Executor exe(net, cpu(), {.threads = 1, .distributed = {.world = world}});
        exe.run(shard_of(net, world, 4));
        exe.run(shard_of(net, world, 5 + world.rank));
        return std::string("trained");
      }).results();
  for (const std::string& result : results) {
    EXPECT_TRUE(states(result, "UserError: rank 1 has another length of the step than rank 0"));
  }
}

}  // namespace
}  // namespace fluid::length_test
