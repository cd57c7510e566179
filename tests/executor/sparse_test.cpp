// Training of tables of which a step reads a few rows, against PyTorch's sparse gradients
// (tests/golden/sparse.py) and against dense gradients.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "frontend/fluid.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/processes.h"

namespace fluid::sparse_test {
namespace {

using testing::golden_uniform;

constexpr int64_t kV = 11, kD = 3, kN = 4, kL = 3;
constexpr uint64_t kIndex = 100, kTarget = 200, kWeights = 300;  // streams: plus the step

Tensor numbers(uint64_t stream, std::vector<int64_t> shape) {
  Tensor t(f64, std::move(shape));
  const std::vector<double> u = golden_uniform(stream, t.numel());
  std::memcpy(t.data(), u.data(), static_cast<size_t>(t.bytes()));
  return t;
}

Tensor indices(uint64_t step) {
  Tensor t = numbers(kIndex + step, {kN, kL});
  for (double& v : t.as<double>()) v = std::floor(v * (kV - 1));
  return t.cast(i64);
}

struct Table {
  bool bag = false, sparse = true;
  int64_t rows = kV;
  DType dtype = f64;
};

Value record(Program& net, const Table& t) {
  const Value index = net.data("index", {kBatch, kL}, i64);
  const Value table = net.parameter("table", {t.rows, kD}, Init::uniform(0, 1),
                                    {.dtype = t.dtype, .sparse = t.sparse});
  Value y;
  if (t.bag) {
    y = embedding_bag(table, index, net.data("weights", {kBatch, kL}, t.dtype), {.mode = "sum"});
  } else {
    y = embedding(table, index);
  }
  const Value loss = sum(square(y - net.data("target", y.shape(), t.dtype)));
  net.output("loss", loss);
  return loss;
}

struct Data {
  Tensor index, target, weights;
  bool bag = false;
};

Data data(uint64_t step, const Table& t) {
  const auto target = t.bag ? std::vector{kN, kD} : std::vector{kN, kL, kD};
  return {indices(step), numbers(kTarget + step, target).cast(t.dtype),
          numbers(kWeights + step, {kN, kL}).cast(t.dtype), t.bag};
}

void run(Executor& exe, const Data& d) {
  if (d.bag) {
    exe.run({{"index", d.index}, {"target", d.target}, {"weights", d.weights}});
  } else {
    exe.run({{"index", d.index}, {"target", d.target}});
  }
}

/// The table after `steps` steps from the script's initial values.
Tensor train(const Program& net, const Table& t, int steps, const ExecutorOptions& options = {}) {
  Executor exe(net, cpu(), options);
  exe.set_parameter("table", numbers(0, {t.rows, kD}).cast(t.dtype));
  for (int s = 0; s < steps; ++s) run(exe, data(static_cast<uint64_t>(s), t));
  return exe.parameter("table").copy();
}

void expect_equal_bits(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())), 0);
}

void minimize_by(const std::string& optimizer, Value loss) {
  if (optimizer == "sgd") minimize(loss, SGD{.lr = 0.1});
  if (optimizer == "adagrad") minimize(loss, Adagrad{.lr = 0.1});
  if (optimizer == "adam") minimize(loss, Adam{.lr = 0.1, .eps = 1e-30});
}

TEST(Sparse, TablesAreThoseOfPyTorch) {
  std::ifstream file(std::string(FLUID_SOURCE_DIR) + "/tests/golden/sparse.json");
  const auto golden = nlohmann::json::parse(file);
  ASSERT_EQ(golden["cases"].size(), 6);
  for (const auto& c : golden["cases"]) {
    const Table t{.bag = c["bag"]};
    Program net("net");
    minimize_by(c["optimizer"], record(net, t));
    const Tensor table = train(net, t, 4);
    for (int64_t i = 0; i < table.numel(); ++i) {
      EXPECT_NEAR(table.at(i), c["table"][static_cast<size_t>(i)].get<double>(), 1e-12)
          << c["optimizer"] << " " << t.bag << " " << i;
    }
  }
}

TEST(Sparse, StochasticGradientDescentGivesTheBitsOfDenseGradients) {
  for (const bool bag : {false, true}) {
    std::vector<Tensor> tables;
    for (const bool sparse : {false, true}) {
      const Table t{.bag = bag, .sparse = sparse, .dtype = f32};
      Program net("net");
      minimize(record(net, t), SGD{.lr = 0.1});
      for (const int threads : {1, 2}) tables.push_back(train(net, t, 3, {.threads = threads}));
    }
    for (const Tensor& t : tables) expect_equal_bits(t, tables.front());
  }
}

TEST(Sparse, ClippingSeesTheNormOfTheWholeGradient) {
  std::vector<Tensor> tables;
  for (const bool sparse : {false, true}) {
    const Table t{.sparse = sparse};
    Program net("net");
    minimize(record(net, t), SGD{.lr = 0.1}, {.clip = {.global_norm = 0.5}});
    tables.push_back(train(net, t, 3));
  }
  for (int64_t i = 0; i < tables[0].numel(); ++i) {
    EXPECT_NEAR(tables[0].at(i), tables[1].at(i), 1e-14);
  }
}

TEST(Sparse, RowsThatAStepDoesNotReadKeepTheirMoments) {
  const Table t;
  Program net("net");
  minimize(record(net, t), Adam{.lr = 0.1});
  Executor exe(net, cpu());
  run(exe, data(0, t));
  const Tensor table = exe.parameter("table").copy(), m = exe.parameter("table.m").copy();
  run(exe, data(1, t));
  const Tensor index = indices(1);
  const auto read = index.as<int64_t>();
  for (int64_t row = 0; row < kV; ++row) {
    const bool is_read = std::ranges::find(read, row) != read.end();
    for (int64_t i = row * kD; i < (row + 1) * kD; ++i) {
      EXPECT_EQ(exe.parameter("table").at(i) != table.at(i), is_read) << row;
      EXPECT_EQ(exe.parameter("table.m").at(i) != m.at(i), is_read) << row;
    }
  }
}

TEST(Sparse, ASkippedStepChangesNoRow) {
  const Table t;
  Program net("net");
  minimize(record(net, t), Adam{.lr = 0.1});
  Executor exe(net, cpu(), {.debug = {.check_finite = true}});
  run(exe, data(0, t));
  const Tensor table = exe.parameter("table").copy(), v = exe.parameter("table.v").copy();
  Data bad = data(1, t);
  bad.target.as<double>()[0] = INFINITY;
  run(exe, bad);
  expect_equal_bits(exe.parameter("table"), table);
  expect_equal_bits(exe.parameter("table.v"), v);
}

TEST(Sparse, AnIndexOutOfRangeChangesNoRow) {
  const Table t;
  Program net("net");
  minimize(record(net, t), Adam{.lr = 0.1});
  Executor exe(net, cpu());
  run(exe, data(0, t));
  const Tensor table = exe.parameter("table").copy();
  Data bad = data(1, t);
  bad.index.as<int64_t>()[5] = kV;
  expect_user_error([&] { run(exe, bad); }, "out of range");
  expect_equal_bits(exe.parameter("table"), table);
}

TEST(Sparse, HalfPrecisionReadsRowsOfTheMasterTable) {
  std::vector<Tensor> tables;
  for (const bool sparse : {false, true}) {
    Table t{.sparse = sparse, .dtype = f32};
    Program net("net");
    const Value index = net.data("index", {kBatch, kL}, i64);
    const Value table = net.parameter("table", {kV, kD}, Init::uniform(0, 1), {.sparse = sparse});
    const Value w = net.parameter("w", {kD, kD}, Init::constant(0.5));
    const Value y = matmul(embedding(table, index), w);
    const Value loss = sum(square(y - net.data("target", y.shape(), f32)));
    net.output("loss", loss);
    minimize(loss, SGD{.lr = 0.01});
    tables.push_back(train(net, t, 3, {.precision = {.amp = AmpOptions{.dtype = f16}}}));
  }
  expect_equal_bits(tables[0], tables[1]);
}

TEST(Sparse, NoValueOfAStepHasTheSizeOfTheTable) {
  const Table t{.rows = 100'000, .dtype = f32};
  Program net("net");
  minimize(record(net, t), Adam{.lr = 0.1});
  Executor exe(net, cpu());
  exe.prepare({.train = {kN}});
  EXPECT_LT(exe.memory().transient, 100'000);
}

TEST(Sparse, ASavedProgramKeepsTheOption) {
  Program net("net");
  minimize(record(net, {}), Adam{.lr = 0.1});
  const std::string text = net.text();
  EXPECT_NE(text.find("sparse = true"), std::string::npos) << text;
}

TEST(Sparse, RejectsATableThatTwoOpsRead) {
  Program net("net");
  const Value index = net.data("index", {kBatch}, i64);
  const Value table = net.parameter("table", {kV, kD}, Init::uniform(0, 1), {.sparse = true});
  const Value loss = mean(embedding(table, index) * embedding(table, index + 1));
  net.output("loss", loss);
  minimize(loss, SGD{});
  expect_user_error([&] { Executor(net, cpu()).prepare({.train = {2}}); },
                    "parameter 'table' is sparse, but 2 ops read it; concatenate their indices");
}

TEST(Sparse, RejectsATableWithADenseGradient) {
  Program net("net");
  const Value table = net.parameter("table", {kV, kD}, Init::uniform(0, 1), {.sparse = true});
  const Value loss = mean(matmul(net.data("x", {kBatch, kV}, f32), table));
  net.output("loss", loss);
  minimize(loss, SGD{});
  expect_user_error([&] { Executor(net, cpu()).prepare({.train = {2}}); },
                    "parameter 'table' is sparse, but its gradient, from matmul, is dense");
}

void expect_near(const Tensor& a, const Tensor& b, double bound, const std::string& what) {
  ASSERT_EQ(a.shape(), b.shape());
  for (int64_t i = 0; i < a.numel(); ++i) ASSERT_NEAR(a.at(i), b.at(i), bound) << what << " " << i;
}

TEST(Sparse, MicroBatchesUpdateEachRowOnce) {
  for (const bool bag : {false, true}) {
    for (const std::string optimizer : {"sgd", "adagrad", "adam"}) {
      const Table t{.bag = bag};
      Program net("net");
      minimize_by(optimizer, record(net, t));
      const Tensor expected = train(net, t, 3);
      for (const int64_t count : {2, 3}) {
        expect_near(train(net, t, 3, {.micro_batches = count}), expected, 1e-12,
                    optimizer + (bag ? " bag" : ""));
      }
    }
  }
}

TEST(Sparse, MicroBatchesGiveTheTableOfDenseGradients) {
  std::vector<Tensor> tables;
  for (const bool sparse : {false, true}) {
    const Table t{.sparse = sparse, .dtype = f32};
    Program net("net");
    minimize(record(net, t), SGD{.lr = 0.1}, {.clip = {.global_norm = 0.5}});
    tables.push_back(train(net, t, 3, {.micro_batches = 4}));
  }
  expect_near(tables[0], tables[1], 1e-6, "f32");
}

/// This rank's share of the first `samples` samples of `whole`.
Batch share(const Data& whole, const World& world, int64_t samples) {
  const int64_t least = samples / world.size, more = samples % world.size;
  const int64_t first = world.rank * least + std::min<int64_t>(world.rank, more);
  Batch batch{.size = least + (world.rank < more ? 1 : 0),
              .columns = {},
              .first = first,
              .global_batch_size = samples};
  const auto add = [&](const std::string& name, const Tensor& all) {
    std::vector<int64_t> shape = all.shape();
    const int64_t bytes = all.bytes() / shape[0];
    shape[0] = batch.size;
    Tensor part(all.dtype(), shape);
    if (part.bytes() > 0) {
      std::memcpy(part.data(), static_cast<const std::byte*>(all.data()) + first * bytes,
                  static_cast<size_t>(part.bytes()));
    }
    batch.columns.emplace_back(name, part);
  };
  add("index", whole.index);
  add("target", whole.target);
  if (whole.bag) add("weights", whole.weights);
  return batch;
}

/// The table after one step on kN samples and one on two, of which a third rank has none.
Tensor train_rank(const Program& net, const Table& t, ExecutorOptions options) {
  options.threads = 1;
  const World& world = options.distributed.world;
  Executor exe(net, cpu(), options);
  exe.set_parameter("table", numbers(0, {t.rows, kD}).cast(t.dtype));
  exe.run(share(data(0, t), world, kN));
  exe.run(share(data(1, t), world, 2));
  return exe.parameter("table").copy();
}

std::string bits_of(const Tensor& t) {
  return {static_cast<const char*>(t.data()), static_cast<size_t>(t.bytes())};
}

TEST(Sparse, RanksUpdateTheRowsOfAll) {
  struct Case {
    std::string optimizer;
    bool bag;
    int ranks;
    int64_t micro_batches;
  };
  for (const Case& c : {Case{"adam", false, 2, 1}, Case{"adagrad", true, 3, 1},
                        Case{"sgd", false, 3, 2}, Case{"adam", true, 2, 2}}) {
    const Table t{.bag = c.bag};
    Program net("net");
    minimize_by(c.optimizer, record(net, t));
    const Tensor expected = train_rank(net, t, {});
    const std::vector<std::string> tables =
        testing::Ranks(c.ranks, [&](const World& world) {
          return bits_of(train_rank(
              net, t, {.micro_batches = c.micro_batches, .distributed = {.world = world}}));
        }).results();
    Tensor table(f64, {kV, kD});
    ASSERT_EQ(tables[0].size(), static_cast<size_t>(table.bytes())) << tables[0];
    std::memcpy(table.data(), tables[0].data(), tables[0].size());
    expect_near(table, expected, 1e-12, c.optimizer);
    for (const std::string& other : tables) EXPECT_TRUE(other == tables[0]) << c.optimizer;
  }
}

TEST(Sparse, NoValueOfARankHasTheSizeOfTheTable) {
  const Table t{.rows = 100'000, .dtype = f32};
  Program net("net");
  minimize(record(net, t), Adam{.lr = 0.1});
  Executor exe(net, cpu(), {.micro_batches = 2, .distributed = {.force_collectives = true}});
  exe.prepare({.train = {kN}});
  EXPECT_LT(exe.memory().transient, 100'000);
}

TEST(Sparse, StrictShapesCompileForAnotherGlobalBatch) {
  const Table t;
  Program net("net");
  minimize(record(net, t), SGD{.lr = 0.1});
  Executor exe(net, cpu(), {.strict_shapes = true, .distributed = {.force_collectives = true}});
  exe.prepare({.train = {2}});
  Batch half = share(data(0, t), {.rank = 1, .size = 2}, kN);
  exe.run(half);
  half.size = 1;
  expect_user_error([&] { exe.run(half); }, "which was not prepared");
}

TEST(Sparse, PartsNeedRowsOfTheBatch) {
  Program net("net");
  const Value table = net.parameter("table", {kV, kD}, Init::uniform(0, 1), {.sparse = true});
  const Value rows = embedding(table, arange(*table.op()->graph(), {.type = Type{i64, {kV}, {}}}));
  const Value loss = mean(matmul(net.data("x", {kBatch, kV}, f32), rows));
  net.output("loss", loss);
  minimize(loss, SGD{});
  expect_user_error([&] { Executor(net, cpu(), {.micro_batches = 2}).prepare({.train = {4}}); },
                    "parameter 'table' is sparse, but the rows that a step reads do not depend on "
                    "the batch, as micro-batches and several ranks need; make it dense");
}

TEST(Sparse, HasNoEffectOnAGivenTable) {
  Program net("net");
  const Value table = net.parameter("table", {kV, kD}, Init::uniform(0, 1));
  expect_user_error(
      [&] {
        embedding(net.data("index", {kBatch}, i64),
                  {.rows = kV, .units = kD, .weight = table, .sparse = true});
      },
      "embedding: options of parameters, such as trainable and lr_scale, have no effect on given");
}

}  // namespace
}  // namespace fluid::sparse_test
