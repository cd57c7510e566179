// Several processes train as one does on all of their samples.

#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <thread>

#include "executor/executor.h"
#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "frontend/readers/reader.h"
#include "ops/operators.h"
#include "passes/loss_scale.h"
#include "tests/support/errors.h"
#include "tests/support/processes.h"
#include "tests/support/training.h"

namespace fluid {
namespace {

using testing::Ranks;

constexpr int64_t kWhole = 12;    // samples of a step, over all ranks
constexpr int64_t kSamples = 26;  // an epoch's: two steps, and one that is too small for all ranks

/// With dropout, a metric and an output of a row a sample; without batch statistics.
Program parallel_program(const StepRules& rules = {}) {
  Program net("parallel");
  const Value x = net.data("x", {kBatch, 6}, f32);
  const Value label = net.data("label", {kBatch}, i64);
  const Value h = dropout(linear(x, {.units = 8, .act = Act::tanh}), {.p = 0.25});
  const Value scores = linear(h, {.units = 3});
  const Value loss = mean(softmax_cross_entropy(scores, label));
  net.output("loss", loss);
  net.output("accuracy", accuracy(scores, label));
  net.output("scores", scores);
  minimize(loss, Adam{.lr = 0.01}, rules);
  return net;
}

/// With normalisations: the first of data alone, the next of what is around `offset`.
Program normalising_program(double offset) {
  Program net("normalising");
  const Value x = net.data("x", {kBatch, 6}, f32);
  const Value label = net.data("label", {kBatch}, i64);
  Value h = reshape(batch_norm(x), {kBatch, 2, 3});
  h = batch_norm(h + scalar_like(h, offset), {.act = Act::tanh});
  h = batch_norm(linear(reshape(h, {kBatch, 6}), {.units = 8, .act = Act::tanh}));
  const Value scores = linear(h, {.units = 3});
  const Value loss = mean(softmax_cross_entropy(scores, label));
  net.output("loss", loss);
  net.output("accuracy", accuracy(scores, label));
  net.output("scores", scores);
  minimize(loss, Adam{.lr = 0.01});
  return net;
}

Dataset samples() {
  Tensor x(f32, {kSamples, 6}), label(i64, {kSamples});
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.as<float>()[static_cast<size_t>(i)] = static_cast<float>(std::sin(3.0 * double(i)));
  }
  for (int64_t i = 0; i < kSamples; ++i) label.as<int64_t>()[static_cast<size_t>(i)] = i % 3;
  return {{{"x", x}, {"label", label}}};
}

/// What a rank saw: the losses and accuracies of its steps, then its parameters.
struct Seen {
  std::vector<double> figures;
  std::vector<double> parameters;
  bool operator==(const Seen&) const = default;
};

std::string text_of(const Seen& seen) {
  std::string text(sizeof(size_t), 0);
  const size_t count = seen.figures.size();
  std::memcpy(text.data(), &count, sizeof count);
  for (const auto* part : {&seen.figures, &seen.parameters}) {
    text.append(reinterpret_cast<const char*>(part->data()), part->size() * sizeof(double));
  }
  return text;
}

Seen seen_in(const std::string& text) {
  size_t count = 0;
  if (text.size() < sizeof count) return {};
  std::memcpy(&count, text.data(), sizeof count);
  std::vector<double> all((text.size() - sizeof count) / sizeof(double));
  std::memcpy(all.data(), text.data() + sizeof count, all.size() * sizeof(double));
  if (count > all.size()) {
    ADD_FAILURE() << text.substr(0, 300);
    return {};
  }
  const auto middle = all.begin() + static_cast<ptrdiff_t>(count);
  return {{all.begin(), middle}, {middle, all.end()}};
}

/// `steps` steps of `net` on this rank's share of each.
Seen trained(const Program& net, ExecutorOptions options, int64_t steps) {
  const World& world = options.world;
  Reader reader(
      samples(),
      {.batch = kWhole / world.size, .shuffle_seed = 1, .rank = world.rank, .world = world.size});
  options.threads = 1;
  options.seed = 7 + static_cast<uint64_t>(world.rank);  // rank 0's counts
  Executor exe(net, cpu(), options);
  exe.prepare({.train = reader.batch_sizes()});
  Seen seen;
  for (int64_t step = 0; step < steps;) {
    for (const Batch& batch : reader) {
      const Outputs outputs = exe.run(batch);
      seen.figures.push_back(outputs["loss"].item());
      seen.figures.push_back(outputs.find("accuracy").sum);
      seen.figures.push_back(outputs.find("accuracy").weight);
      EXPECT_EQ(outputs.has("scores"), batch.size > 0);
      if (++step == steps) break;
    }
  }
  for (const std::string& name : exe.parameters()) {
    const Tensor t = exe.parameter(name);
    for (int64_t i = 0; i < t.numel(); ++i) seen.parameters.push_back(t.at(i));
  }
  if (const auto scaling = exe.loss_scaling()) {
    seen.parameters.push_back(scaling->scale);
    seen.parameters.push_back(static_cast<double>(scaling->skipped));
  }
  return seen;
}

/// What `size` ranks see, which must be the same.
Seen trained_by(int size, const Program& net, const ExecutorOptions& options, int64_t steps) {
  const std::vector<std::string> results = Ranks(size, [&](const World& world) {
                                             ExecutorOptions mine = options;
                                             mine.world = world;
                                             return text_of(trained(net, mine, steps));
                                           }).results();
  for (const std::string& result : results) EXPECT_TRUE(result == results[0]) << result;
  return seen_in(results[0]);
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b, double relative) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_NEAR(a[i], b[i], relative * std::max(1.0, std::abs(b[i]))) << i;
  }
}

TEST(DataParallel, RanksTrainAsOneProcessDoes) {
  const Program net = parallel_program({.clip = {.global_norm = 0.5}});
  const ExecutorOptions options{.dtype = f64};
  const Seen one = trained(net, options, 50);
  for (const int size : {2, 3, 4}) {
    SCOPED_TRACE(size);
    const Seen ranks = trained_by(size, net, options, 50);
    expect_near(ranks.figures, one.figures, 1e-9);
    expect_near(ranks.parameters, one.parameters, 1e-9);
  }
}

TEST(DataParallel, SynchronisedStatisticsAreThoseOfTheWholeBatch) {
  const Program net = normalising_program(50);
  const Seen one = trained(net, {.dtype = f64, .sync_bn = true}, 50);
  EXPECT_EQ(one, trained(net, {.dtype = f64}, 50));
  for (const int size : {2, 3}) {  // of 3 one has no sample of an epoch's last step
    SCOPED_TRACE(size);
    const Seen ranks = trained_by(size, net, {.dtype = f64, .sync_bn = true}, 50);
    expect_near(ranks.figures, one.figures, 1e-9);
    expect_near(ranks.parameters, one.parameters, 1e-9);  // and running statistics
  }
}

TEST(DataParallel, SynchronisedStatisticsWorkInHalfAndOnAVerifiedPlan) {
  const Program net = normalising_program(0);
  for (const DType dtype : {f32, bf16}) {
    ExecutorOptions options{.sync_bn = true, .verify_plan = true};
    if (dtype == bf16) options.amp = AmpOptions{.dtype = bf16};
    options.buckets = {.first_bytes = 8, .bytes = 100};
    const Seen one = trained(net, options, 5);
    expect_near(trained_by(3, net, options, 5).figures, one.figures, dtype == f32 ? 1e-4 : 0.05);
  }
}

/// Of a layer that batch norm follows the ranks' shares of the gradient nearly cancel: here 90874
/// and -84929, scaled, of one weight of fc0, where the largest of the whole batch's is 11168. Each
/// is rounded to f16, whose largest number is 65504, before they are added up.
TEST(DataParallel, AShareOfAGradientMayOverflowWhereTheSumDoesNot) {
  const Program net = normalising_program(0);
  const auto scaling = [&](int size, const AmpOptions& amp) {
    const ExecutorOptions options{.amp = amp, .sync_bn = true};
    const Seen seen = size == 1 ? trained(net, options, 1) : trained_by(size, net, options, 1);
    return std::vector<double>(seen.parameters.end() - 2, seen.parameters.end());
  };
  const AmpOptions half{.dtype = f16};
  EXPECT_EQ(scaling(1, half), (std::vector<double>{65536, 0}));
  EXPECT_EQ(scaling(2, half), (std::vector<double>{32768, 1}));
  AmpOptions other = half;
  other.in_f32 = {"fc0"};
  EXPECT_EQ(scaling(2, other), (std::vector<double>{65536, 0}));
}

TEST(DataParallel, SynchronisedStatisticsAreOfWholeSteps) {
  const Program net = normalising_program(0);
  World world;
  world.size = 2;
  const ExecutorOptions options{.micro_batches = 2, .world = world, .sync_bn = true};
  expect_user_error([&] { Executor(net, cpu(), options); },
                    "sync_bn takes the statistics of whole steps, not of their micro-batches");
  const ExecutorOptions watched{.world = world, .sync_bn = true, .check_finite = true};
  expect_user_error([&] { Executor(net, cpu(), watched); },
                    "check_finite looks at each rank alone, which sync_bn does not let compute");
}

TEST(DataParallel, RanksThatShareTheOptimizersStateDoToo) {
  for (const StepRules& rules :
       {StepRules{.clip = {.global_norm = 0.5}}, {.clip = {.norm = 0.2}}}) {
    const Program net = parallel_program(rules);
    const Seen one = trained(net, {.dtype = f64}, 50);
    ExecutorOptions options{.dtype = f64, .zero = 1};
    for (const int size : {2, 3, 4}) {
      SCOPED_TRACE(size);
      const Seen ranks = trained_by(size, net, options, 50);
      expect_near(ranks.figures, one.figures, 1e-9);
      expect_near(ranks.parameters, one.parameters, 1e-9);
    }
    options.micro_batches = 3;
    options.verify_plan = true;
    options.buckets = {.first_bytes = 8, .bytes = 100};
    expect_near(trained_by(3, net, options, 20).parameters,
                trained(net, {.dtype = f64}, 20).parameters, 1e-9);
  }
}

TEST(DataParallel, StateIsSharedOrNot) {
  expect_user_error([] { Executor(parallel_program(), cpu(), {.zero = 2}); },
                    "zero = 2: 1 shards the optimizer's state, 0 nothing");
}

TEST(DataParallel, ASharedStateFollowsInHalf) {
  const Program net = parallel_program();
  ExecutorOptions options{.amp = AmpOptions{.level = AmpLevel::o2}};
  const Seen one = trained(net, options, 10);
  options.zero = 1;
  options.buckets.dtype = bf16;
  expect_near(trained_by(2, net, options, 10).figures, one.figures, 0.02);
}

TEST(DataParallel, BucketsMakeNoDifference) {
  const Program net = parallel_program();
  const ExecutorOptions options{.dtype = f64};
  ExecutorOptions small = options;
  small.buckets = {.first_bytes = 8, .bytes = 100};
  EXPECT_EQ(trained_by(2, net, small, 5), trained_by(2, net, options, 5));
}

TEST(DataParallel, WorksInSlicesAndOnAVerifiedPlan) {
  const Program net = parallel_program({.clip = {.global_norm = 0.5}});
  const Seen one = trained(net, {.dtype = f64}, 20);
  const Seen ranks =
      trained_by(3, net, {.dtype = f64, .micro_batches = 3, .verify_plan = true}, 20);
  expect_near(ranks.figures, one.figures, 1e-9);
  expect_near(ranks.parameters, one.parameters, 1e-9);
}

TEST(DataParallel, FollowsInF32AndInHalf) {
  const Program net = parallel_program();
  expect_near(trained_by(2, net, {}, 10).figures, trained(net, {}, 10).figures, 1e-5);
  for (const DType dtype : {f16, bf16}) {
    SCOPED_TRACE(name_of(dtype));
    const ExecutorOptions half{.amp = AmpOptions{.dtype = dtype}};
    const ExecutorOptions copied{.amp = AmpOptions{.dtype = dtype, .level = AmpLevel::o2}};
    ExecutorOptions travelling = half;
    travelling.buckets.dtype = dtype;
    const Seen one = trained(net, half, 10);
    expect_near(trained_by(2, net, half, 10).figures, one.figures, 0.02);
    expect_near(trained_by(2, net, travelling, 10).figures, one.figures, 0.02);
    expect_near(trained_by(2, net, copied, 10).figures, trained(net, copied, 10).figures, 0.02);
  }
}

/// A doubt in a single bit grows over so many steps.
TEST(DataParallel, ParametersStayTheSameBitsOnAllRanks) {
  const Program net = parallel_program({.clip = {.global_norm = 0.5}});
  const Seen plain = trained_by(3, net, {}, 200);
  EXPECT_EQ(plain.figures.size(), 600U);
  ExecutorOptions half{.amp = AmpOptions{.dtype = f16}};
  half.buckets = {.first_bytes = 8, .bytes = 100, .dtype = f16};
  EXPECT_NE(trained_by(2, net, half, 200).parameters, plain.parameters);
}

/// A rank's part of the first kWhole samples.
Batch share_of_batch(const World& world) {
  const int64_t count = kWhole / world.size, first = world.rank * count;
  Batch batch{.size = count, .columns = {}, .first = first, .whole = kWhole};
  for (const auto& [name, column] : samples().columns) {
    const int64_t bytes = column.bytes() / kSamples;
    std::vector<int64_t> shape = column.shape();
    shape[0] = count;
    Tensor part(column.dtype(), shape);
    std::memcpy(part.data(), static_cast<const std::byte*>(column.data()) + first * bytes,
                static_cast<size_t>(count * bytes));
    batch.columns.emplace_back(name, part);
  }
  return batch;
}

const std::vector<std::string> kTrained = {"fc0.w", "fc0.b", "fc1.w", "fc1.b"};

/// All of a snapshot's floats.
std::vector<double> floats_of(const Snapshot& snapshot) {
  std::vector<double> all;
  for (const Kept& kept : snapshot.variables) {
    if (!is_float(kept.value.dtype())) continue;
    for (int64_t i = 0; i < kept.value.numel(); ++i) all.push_back(kept.value.at(i));
  }
  return all;
}

TEST(DataParallel, ASharedStateIsWholeInASnapshot) {
  const Program net = parallel_program();
  const auto executor = [&](const World& world) {
    return Executor(
        net, cpu(),
        {.batch = kWhole / world.size, .threads = 1, .dtype = f64, .world = world, .zero = 1});
  };
  Executor alone = executor({});
  alone.run(share_of_batch({}));
  Snapshot before = alone.snapshot();
  for (Kept& kept : before.variables) kept.value = kept.value.copy();
  alone.run(share_of_batch({}));
  const std::vector<double> after = floats_of(alone.snapshot());
  const auto state = static_cast<double>(alone.memory().state);
  const std::vector<std::string> results = Ranks(2, [&](const World& world) {
                                             Executor exe = executor(world);
                                             exe.restore(before);
                                             exe.run(share_of_batch(world));
                                             const auto mine = floats_of(exe.snapshot());
                                             const auto bytes = exe.memory().state;
                                             return text_of({{static_cast<double>(bytes)}, mine});
                                           }).results();
  for (const std::string& result : results) EXPECT_LT(seen_in(result).figures.at(0), state);
  expect_near(seen_in(results[0]).parameters, after, 1e-9);
  EXPECT_LT(seen_in(results[1]).parameters.size(), after.size());
}

TEST(DataParallel, ASharedStateIsKnownWhateverIsPreparedFirst) {
  const std::vector<std::string> results =
      Ranks(2, [](const World& world) {
        Executor exe(parallel_program(), cpu(),
                     {.threads = 1, .world = world, .zero = 1, .any_batch = true});
        expect_user_error([&] { exe.broadcast(); },
                          "prepare() a training step before broadcast(): its state is shared");
        exe.run(share_of_batch(world));
        return std::to_string(exe.snapshot().variables.size());
      }).results();
  EXPECT_GT(std::stoi(results[0]), std::stoi(results[1])) << results[0] << " " << results[1];
}

TEST(DataParallel, AllRanksLearnThatRankZeroFailed) {
  const std::vector<std::string> results =
      Ranks(2, [](const World& world) {
        Executor exe(parallel_program(), cpu(), {.batch = 6, .threads = 1, .world = world});
        exe.lead([] { throw UserError("the disk is full"); });
        return std::string();
      }).results();
  EXPECT_EQ(results[0], "UserError: the disk is full");
  EXPECT_EQ(results[1], "UserError: rank 0: the disk is full");
}

TEST(DataParallel, AllRanksLetThePrecisionBeChosenOrNone) {
  const std::vector<std::string> results =
      Ranks(2, [](const World& world) {
        Executor(parallel_program(), cpu(),
                 {.batch = 6, .threads = 1, .choose_amp = world.rank == 0, .world = world});
        return std::string();
      }).results();
  for (const std::string& result : results) {
    EXPECT_EQ(
        result,
        "UserError: rank 1 has another choice of precision than rank 0: start all ranks alike");
  }
}

/// The gradients of a first step: Adam's first moments, which are a tenth of them.
std::vector<double> gradients_with(const World& world, DType half) {
  const Program net = parallel_program();
  Executor exe(net, cpu(),
               {.batch = kWhole / world.size,
                .threads = 1,
                .amp = AmpOptions{.dtype = half},
                .world = world});
  exe.run(share_of_batch(world));
  std::vector<double> all;
  for (const std::string& name : kTrained) {
    const Tensor m = exe.parameter(name + ".m");
    for (int64_t i = 0; i < m.numel(); ++i) all.push_back(m.at(i));
  }
  return all;
}

TEST(DataParallel, HalfGradientsAreThoseOfTheWholeBatch) {
  const std::vector<size_t> sizes = {48, 8, 24, 3};
  for (const DType half : {bf16, f16}) {
    const double bound = half == bf16 ? std::pow(2.0, -6) : std::pow(2.0, -9);
    const std::vector<double> one = gradients_with({}, half);
    const std::vector<double> ranks =
        seen_in(Ranks(2,
                      [&](const World& world) {
                        return text_of({gradients_with(world, half), {}});
                      })
                    .results()[0])
            .figures;
    ASSERT_EQ(ranks.size(), one.size());
    for (size_t p = 0, first = 0; p < sizes.size(); first += sizes[p++]) {
      double difference = 0, norm = 0;
      for (size_t i = first; i < first + sizes[p]; ++i) {
        difference += std::pow(ranks[i] - one[i], 2);
        norm += std::pow(one[i], 2);
      }
      EXPECT_LE(std::sqrt(difference), bound * std::sqrt(norm)) << kTrained[p] << name_of(half);
    }
  }
}

/// The loss scale and the skipped steps after each of six steps, in the second and fifth of which
/// the samples of the last rank alone overflow.
std::vector<double> scales_with(const World& world) {
  const Program net = parallel_program();
  Executor exe(net, cpu(),
               {.batch = kWhole / world.size,
                .threads = 1,
                .amp = AmpOptions{.dtype = f16, .loss_scale = {.interval = 2}},
                .world = world});
  std::vector<double> seen;
  for (int step = 0; step < 6; ++step) {
    Batch batch = share_of_batch(world);
    if (world.rank == world.size - 1 && step % 3 == 1) {
      batch.columns[0].second.as<float>()[0] = 1e6F;
    }
    exe.run(batch);
    seen.push_back(exe.loss_scaling()->scale);
    seen.push_back(static_cast<double>(exe.loss_scaling()->skipped));
  }
  return seen;
}

TEST(DataParallel, AllRanksSkipTheSameSteps) {
  const std::vector<double> one = scales_with({});
  EXPECT_EQ(one, (std::vector<double>{65536, 0, 32768, 1, 32768, 1, 65536, 1, 32768, 2, 32768, 2}));
  const std::vector<std::string> results = Ranks(3, [](const World& world) {
                                             return text_of({scales_with(world), {}});
                                           }).results();
  for (const std::string& result : results) EXPECT_EQ(seen_in(result).figures, one);
}

TEST(DataParallel, ABatchSaysWhichPartItIs) {
  const std::vector<std::string> said =
      Ranks(2, [](const World& world) {
        Batch batch = share_of_batch(world);
        batch.whole = 0;
        const Program net = parallel_program();
        Executor(net, cpu(), {.batch = 6, .world = world}).run(batch);
        return std::string();
      }).results();
  EXPECT_EQ(said[0],
            "UserError: run() got a batch of 6 samples that does not say of how many on all ranks: "
            "set Batch::first and Batch::whole, as a Reader with rank and world does");
}

/// What rank 0 says when `late` happens to rank 1 before its fourth of six steps; "" when all goes
/// well.
std::string said_after(const std::function<void()>& late) {
  const Program net = parallel_program();
  Ranks ranks(2, [&](const World& world) {
    Reader reader(samples(), {.batch = 6, .rank = world.rank, .world = 2});
    Executor exe(net, cpu(),
                 {.threads = 1, .world = world, .comm_timeout = std::chrono::seconds(2)});
    exe.prepare({.train = reader.batch_sizes()});
    for (int step = 0; step < 6; ++step) {
      if (step == 3 && world.rank == 1) late();
      const Batch* batch = reader.next();
      exe.run(batch == nullptr ? *reader.next() : *batch);
    }
    return std::string();
  });
  return ranks.result(0);
}

TEST(DataParallel, NamesTheRankThatIsGone) {
  for (const int number : {SIGKILL, SIGSTOP}) {
    const std::string said = said_after([number] { raise(number); });
    EXPECT_EQ(said.rfind("DeviceError: rank 0 cannot go on with all-reduce", 0), 0U) << said;
    EXPECT_NE(said.find("rank 1"), std::string::npos) << said;
  }
}

TEST(DataParallel, WaitsForARankThatIsLateUpToTheTimeout) {
  const auto sleep = [](int ms) {
    return [ms] { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); };
  };
  EXPECT_EQ(said_after(sleep(500)), "");
  const std::string said = said_after(sleep(20'000));
  EXPECT_EQ(said.rfind("DeviceError: rank 0 cannot go on with all-reduce", 0), 0U) << said;
  EXPECT_NE(said.find("rank 1"), std::string::npos) << said;
}

}  // namespace
}  // namespace fluid
