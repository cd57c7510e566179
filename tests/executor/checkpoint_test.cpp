// Interrupts training and resumes it from a checkpoint.

#include "executor/checkpoint/checkpoint.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "frontend/fluid.h"
#include "ir/atomic_file.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"

namespace fluid::checkpoint_test {
namespace {

constexpr int64_t kSamples = 50, kBatchSize = 8, kSteps = 10;

/// A program with all kinds of state that steps carry over: moments, running statistics, random
/// numbers, a schedule and, in f16, a loss scale.
template <class Optimizer = Adam>
Program stateful_program(int64_t units = 4, const Optimizer& optimizer = {.lr = 0.01}) {
  Program net("stateful");
  const Value x = net.data("x", {kBatch, 6}, f32);
  const Value y = dropout(batch_norm(linear(x, {.units = units})), {.p = 0.25});
  const Value loss = mean(square(linear(y, {.units = 1})));
  net.output("loss", loss);
  minimize(loss, optimizer, {.schedule = Cosine{.steps = 30, .warmup = 4}});
  return net;
}

Reader shuffled(int64_t batch = kBatchSize) {
  Tensor x(f32, {kSamples, 6});
  const std::vector<double> u = testing::golden_uniform(7, x.numel());
  for (size_t i = 0; i < u.size(); ++i) x.as<float>()[i] = static_cast<float>(4 * u[i] - 2);
  x.as<float>()[77] = 1e6F;  // one step of an epoch overflows in f16
  return Reader({.columns = {{"x", x}}}, {.batch = batch, .shuffle_seed = 3});
}

ExecutorOptions f16_options() {
  return {.seed = 5, .precision = {.amp = AmpOptions{.dtype = f16, .loss_scale = {.interval = 3}}}};
}

/// A training run that can be interrupted.
struct TrainingRun {
  explicit TrainingRun(const Program& net, const ExecutorOptions& options = f16_options(),
                       int64_t batch = kBatchSize)
      : reader(shuffled(batch)), exe(net, cpu(), options) {}

  void train(int64_t n) {
    exe.prepare({.train = reader.batch_sizes()});
    while (n > 0) {
      const Batch* batch = reader.next();
      if (batch == nullptr) continue;
      losses.push_back(std::bit_cast<uint64_t>(exe.run(*batch)["loss"].item()));
      --n;
      ++state.steps;
    }
  }
  std::string save(CheckpointDirectory& to, bool best = false) {
    state.position = reader.position();
    return to.save(exe.snapshot(), state, best);
  }
  /// The options that differ.
  std::string go_on(const std::string& directory) {
    const std::optional<Checkpoint> from = newest_checkpoint(directory);
    state = from->state;
    reader.seek(state.position);
    exe.prepare({.train = reader.batch_sizes()});
    return exe.restore(from->snapshot, from->path);
  }
  /// The bytes of all variables.
  std::map<std::string, std::vector<std::byte>> variables() {
    std::map<std::string, std::vector<std::byte>> all;
    for (const SnapshotVariable& kept : exe.snapshot().variables) {
      const auto* data = static_cast<const std::byte*>(kept.value.data());
      all[kept.name].assign(data, data + kept.value.bytes());
    }
    return all;
  }

  Reader reader;
  Executor exe;
  TrainingState state;
  std::vector<uint64_t> losses;  ///< their bits: one that overflows is nan
};

class CheckpointTest : public ::testing::Test {
 protected:
  std::string path() const { return dir_.file("run"); }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path())) {
      if (!entry.is_symlink()) names.push_back(entry.path().filename().string());
    }
    std::ranges::sort(names);
    return names;
  }
  std::string linked(const std::string& name) const {
    return std::filesystem::read_symlink(path() + "/" + name).string();
  }

  Program net_ = stateful_program();
  TempDir dir_;
};

TEST_F(CheckpointTest, GoesOnBitForBit) {
  TrainingRun whole(net_);
  whole.train(2 * kSteps);
  ASSERT_GT(whole.exe.loss_scaling()->skipped, 0);
  {
    TrainingRun first(net_);
    CheckpointDirectory checkpoints(path());
    first.train(kSteps);
    ASSERT_NE(first.reader.position().sample, 0) << "not in the middle of an epoch";
    first.save(checkpoints);
    first.train(3);  // lost
  }
  TrainingRun second(net_);
  EXPECT_EQ(second.go_on(path()), "");
  EXPECT_EQ(second.state.steps, kSteps);
  second.train(kSteps);
  EXPECT_EQ(second.losses, std::vector(whole.losses.begin() + kSteps, whole.losses.end()));
  EXPECT_EQ(second.variables(), whole.variables());
}

TEST_F(CheckpointTest, KeepsWhatTheLoopAdds) {
  TrainingRun run(net_);
  run.train(1);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  run.state.epochs = 4;
  run.state.output_statistics = {{"loss", {0.1, 3}}, {"odd \"name\"", {nan, 1e300, 0}}};
  run.state.best = {.value = -1e-300, .epoch = 2};
  run.state.best_criterion = "loss:min";
  run.state.monitored_since = 1;
  run.state.recipe_steps = {{"first", 1}, {"second", 0}};
  run.state.options = {{"batch", "8"}};
  CheckpointDirectory checkpoints(path());
  run.save(checkpoints, true);
  const Checkpoint read = *newest_checkpoint(path());
  EXPECT_EQ(read.state.steps, 1);
  EXPECT_EQ(read.state.position, (ReaderPosition{0, kBatchSize}));
  EXPECT_EQ(read.state.epochs, 4);
  ASSERT_EQ(read.state.output_statistics.size(), 2u);
  EXPECT_EQ(read.state.output_statistics[0].statistics[0], 0.1);
  EXPECT_EQ(read.state.output_statistics[1].name, "odd \"name\"");
  EXPECT_TRUE(std::isnan(read.state.output_statistics[1].statistics[0]));
  EXPECT_EQ(read.state.output_statistics[1].statistics[1], 1e300);
  EXPECT_EQ(read.state.best->value, -1e-300);
  EXPECT_EQ(read.state.best->epoch, 2);
  EXPECT_EQ(read.state.best_criterion, "loss:min");
  EXPECT_EQ(read.state.monitored_since, 1);
  EXPECT_EQ(read.state.recipe_steps, run.state.recipe_steps);
  EXPECT_EQ(read.state.options, run.state.options);
  EXPECT_TRUE(read.best);
  EXPECT_FALSE(newest_checkpoint(dir_.file("absent")).has_value());
}

TEST_F(CheckpointTest, KeepsTheNewestAndTheBest) {
  TrainingRun run(net_);
  CheckpointDirectory checkpoints(path(), {.keep = 2});
  EXPECT_TRUE(checkpoints.empty());
  for (int i = 1; i <= 5; ++i) {
    run.train(1);
    run.save(checkpoints, i == 2);
  }
  EXPECT_EQ(names(),
            (std::vector<std::string>{"step-0000000002", "step-0000000004", "step-0000000005"}));
  EXPECT_EQ(linked("best"), "step-0000000002");
  EXPECT_EQ(linked("last"), "step-0000000005");
  run.save(checkpoints);
  EXPECT_EQ(linked("last"), "step-0000000005.1");
  EXPECT_EQ(newest_checkpoint(path())->path, path() + "/step-0000000005.1");
  run.save(checkpoints, true);
  EXPECT_EQ(names(), (std::vector<std::string>{"step-0000000005.1", "step-0000000005.2"}));
  Executor exe(net_, cpu());
  exe.load(path() + "/best/parameters.safetensors");
}

TEST_F(CheckpointTest, PassesOverDamagedOnes) {
  TrainingRun run(net_);
  CheckpointDirectory checkpoints(path());
  run.train(1);
  run.save(checkpoints);
  run.train(1);
  const std::string newest = run.save(checkpoints);
  for (const auto& entry : std::filesystem::directory_iterator(newest)) {
    const std::string file = entry.path().string();
    const std::string whole = read_file(file);
    for (size_t at = 0; at < whole.size(); at += 13) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ 4);
      write_plain(file, damaged);
      const Checkpoint read = *newest_checkpoint(path());
      EXPECT_EQ(read.path, path() + "/step-0000000001") << file << " at " << at;
      ASSERT_EQ(read.skipped_checkpoints.size(), 1u);
      EXPECT_TRUE(read.skipped_checkpoints[0].starts_with(newest)) << read.skipped_checkpoints[0];
    }
    for (const size_t size : {size_t{0}, whole.size() / 2, whole.size() - 2}) {
      write_plain(file, whole.substr(0, size));
      EXPECT_EQ(newest_checkpoint(path())->skipped_checkpoints.size(), 1u)
          << file << " of " << size;
    }
    std::filesystem::remove(file);
    EXPECT_EQ(newest_checkpoint(path())->skipped_checkpoints.size(), 1u) << file << " gone";
    write_plain(file, whole);
    EXPECT_EQ(newest_checkpoint(path())->path, newest);
  }
  write_plain(newest + "/training.safetensors", "");
  write_plain(path() + "/step-0000000001/manifest.json", "{}");
  expect_user_error([&] { newest_checkpoint(path()); },
                    "no checkpoint in '" + path() + "' is intact: " + newest +
                        ": training.safetensors is damaged: its bytes are not those of the "
                        "manifest; " +
                        path() + "/step-0000000001: its manifest is damaged");
}

TEST_F(CheckpointTest, GoesOnAfterDamagedOnes) {
  TrainingRun run(net_);
  CheckpointDirectory checkpoints(path(), {.keep = 1});
  run.train(5);
  std::filesystem::remove(run.save(checkpoints) + "/manifest.json");
  run.state.steps = 2;
  const std::string earlier = run.save(checkpoints);
  EXPECT_EQ(newest_checkpoint(path())->path, earlier) << "a damaged one counts as the one kept";
}

TEST_F(CheckpointTest, GoesOnWithOtherOptions) {
  {
    TrainingRun run(net_);
    CheckpointDirectory checkpoints(path());
    run.train(kSteps);
    run.save(checkpoints);
  }
  TrainingRun full(net_, {.seed = 6, .debug = {.libraries = false}}, 9);
  const std::string changed = full.go_on(path());
  EXPECT_TRUE(
      changed.starts_with("amp off (was f16 with a loss scale from 65536 x 2 / 0.5 every 3 "
                          "in [1, 16777216]), libraries off (was on), seed 6 (was 5)"))
      << changed;
  EXPECT_EQ(full.exe.parameter("rng").at(0), 6);
  EXPECT_EQ(full.exe.parameter("rng").at(1), kSteps);
  full.train(3);
  EXPECT_TRUE(std::isfinite(std::bit_cast<double>(full.losses.back())));

  ExecutorOptions wide = f16_options();
  wide.precision.amp.reset();
  wide.precision.dtype = f64;
  TrainingRun precise(net_, wide);
  EXPECT_NE(precise.go_on(path()).find("dtype f64 (was f32)"), std::string::npos);
  const Checkpoint from = *newest_checkpoint(path());
  EXPECT_EQ(precise.exe.parameter("fc0.w").at(3), from.snapshot.find("fc0.w")->value.at(3));
  EXPECT_EQ(precise.exe.parameter("fc0.w.v").at(3), from.snapshot.find("fc0.w.v")->value.at(3));
  precise.train(3);

  TrainingRun back(net_);
  {
    CheckpointDirectory checkpoints(path());
    precise.save(checkpoints);
  }
  EXPECT_NE(back.go_on(path()).find("dtype f32 (was f64)"), std::string::npos);
  EXPECT_EQ(back.exe.loss_scaling()->scale, 32768) << "of the last step in f16";
}

TEST_F(CheckpointTest, LeavesOutWhatIsOfASlice) {
  ExecutorOptions sliced = f16_options();
  sliced.micro_batches = 3;
  TrainingRun whole(net_, sliced), first(net_, sliced);
  whole.train(kSteps);
  first.train(4);
  {
    CheckpointDirectory checkpoints(path());
    first.save(checkpoints);
  }
  const Checkpoint from = *newest_checkpoint(path());
  EXPECT_EQ(first.exe.parameter("part.weight").numel(), 1);
  EXPECT_EQ(from.snapshot.find("part.weight"), nullptr);
  TrainingRun second(net_, sliced);
  EXPECT_EQ(second.go_on(path()), "");
  second.train(kSteps - 4);
  EXPECT_EQ(second.variables(), whole.variables());
  TrainingRun unsliced(net_);
  EXPECT_EQ(unsliced.go_on(path()), "micro-batches 1 (was 3)");
}

TEST_F(CheckpointTest, OfOtherGroupsIsNamedOrRejected) {
  Program scaled = stateful_program();
  set_parameter_groups(scaled, {{.pattern = "fc0", .trainable = false}});
  {
    TrainingRun run(scaled);
    CheckpointDirectory checkpoints(path());
    run.train(1);
    run.save(checkpoints);
  }
  TrainingRun all(net_);
  expect_user_error(
      [&] { all.go_on(path()); },
      "lacks 'fc0.w.m', which resuming training needs: parameter 'fc0.w' is frozen in "
      "the checkpoint and trains now");
  set_parameter_groups(scaled, {{.pattern = "fc1", .lr_scale = 2}});
  TrainingRun other(scaled);
  const std::string changes = other.go_on(path());
  EXPECT_TRUE(states(changes, "parameter settings 2 frozen, 2 with own rate or decay")) << changes;
  EXPECT_TRUE(states(changes, "(was 2 frozen, 0 with own rate or decay")) << changes;
}

TEST_F(CheckpointTest, RejectsWhatDoesNotFit) {
  {
    TrainingRun run(net_);
    CheckpointDirectory checkpoints(path());
    run.train(1);
    run.save(checkpoints);
  }
  const auto expect_error = [&](const Program& net, const std::string& message) {
    TrainingRun run(net);
    expect_user_error([&] { run.go_on(path()); }, path() + "/step-0000000001: " + message);
    EXPECT_EQ(run.exe.parameter("update").item(), 0);
  };
  expect_error(stateful_program(5), "belongs to another program: 'stateful' has changed since");
  Program other = stateful_program(5);
  other.ir().name = "other";
  expect_error(other, "belongs to another program: 'stateful', not 'other'");
  Program renamed("renamed");
  const Value v = linear(renamed.data("x", {kBatch, 6}, f32), {.units = 1});
  renamed.output("loss", mean(v));
  minimize(mean(v), Adam{});
  expect_error(renamed, "belongs to another program: its parameter 'fc1.w' is not in 'renamed'");
  expect_error(
      stateful_program(4, SGD{}),
      "its optimizer is \"adam\", the program's is \"sgd\": resume with the same optimizer");
  // The states of AdamW have the names of Adam's.
  expect_error(stateful_program(4, AdamW{}),
               "its optimizer is \"adam\", the program's is \"adamw\": resume with the same");
  expect_error(stateful_program(4, Adam{.lr = 0.01, .amsgrad = true}),
               "lacks 'fc0.w.max_v', which resuming training needs");
  Program frozen = stateful_program();
  set_parameter_groups(frozen, {{.pattern = "fc0", .trainable = false}});
  expect_error(frozen,
               "holds 'fc0.b.m', which this training does not use: parameter 'fc0.b' trains in the "
               "checkpoint and is frozen now; resume with the same groups");
  Executor unprepared(net_, cpu());
  const Checkpoint from = *newest_checkpoint(path());
  expect_user_error([&] { unprepared.restore(from.snapshot); },
                    "snapshot: prepare() a training step before restore()");
  Snapshot narrow = from.snapshot;
  narrow.variables[0].value = Tensor(i64, {1});
  TrainingRun run(net_);
  run.train(1);
  const auto before = run.variables();
  expect_user_error([&] { run.exe.restore(narrow, "narrow"); },
                    "narrow: '" + narrow.variables[0].name + "' is i64[1], but the program's is ");
  EXPECT_EQ(run.variables(), before);
}

TEST_F(CheckpointTest, KeepsWhatCameBeforeADivergence) {
  TrainingRun run(net_);
  CheckpointDirectory checkpoints(path(), {.keep = 1});
  run.train(1);
  run.save(checkpoints);
  Tensor bad = run.exe.parameter("fc0.b");
  bad.as<float>()[1] = std::numeric_limits<float>::quiet_NaN();
  run.exe.set_parameter("fc0.b", bad);
  run.train(1);
  expect_user_error(
      [&] { run.save(checkpoints); },
      "'fc0.b' holds nan: training diverged, and no checkpoint of it is written to '" + path() +
          "'");
  EXPECT_EQ(names(), std::vector<std::string>{"step-0000000001"});
}

TEST_F(CheckpointTest, OneProcessWritesADirectory) {
  {
    CheckpointDirectory first(path());
    expect_user_error([&] { CheckpointDirectory second(path()); },
                      "another process writes checkpoints into '" + path() + "'");
    EXPECT_TRUE(std::filesystem::exists(path()));
  }
  EXPECT_FALSE(std::filesystem::exists(path())) << "nothing came into it";
  expect_user_error([&] { CheckpointDirectory none(path(), {.keep = 0}); },
                    "at least one checkpoint must be kept");
  write_plain(path(), "");
  expect_user_error([&] { CheckpointDirectory file(path()); }, "cannot write '" + path() + "': ");
  expect_user_error([&] { newest_checkpoint(path()); }, "cannot read '" + path() + "': ");
}

/// A checkpoint of another version of Fluid, with a correct hash.
TEST_F(CheckpointTest, ReadsNoOtherVersion) {
  TrainingRun run(net_);
  run.state.output_statistics = {{"loss", {1, 2}}};
  run.state.best = {.value = 1, .epoch = 1};
  CheckpointDirectory checkpoints(path());
  run.train(1);
  const std::string checkpoint = run.save(checkpoints), file = checkpoint + "/manifest.json";
  const auto original = nlohmann::ordered_json::parse(read_file(file));
  const auto write = [&](nlohmann::ordered_json manifest) {
    manifest.erase("hash");
    const std::string text = manifest.dump(1);
    char hash[17];
    std::snprintf(hash, sizeof hash, "%016llx",
                  static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())));
    manifest["hash"] = hash;
    write_plain(file, manifest.dump());
  };
  write(original);
  EXPECT_EQ(read_checkpoint(checkpoint).state.steps, 1);
  auto changed = original;
  changed["state"]["steps"] = 2;
  write_plain(file, changed.dump());
  expect_user_error([&] { read_checkpoint(checkpoint); },
                    checkpoint + ": its manifest is damaged: the hash differs");
  changed["version"] = 1;
  write(changed);
  expect_user_error(
      [&] { read_checkpoint(checkpoint); },
      checkpoint + ": its manifest is of version 1, which this build of Fluid does not read");
  changed = original;
  changed["state"]["best"]["figure"] = "much";
  write(changed);
  expect_user_error([&] { read_checkpoint(checkpoint); },
                    checkpoint + ": its manifest lacks a number");
  changed = original;
  changed["statistics"][0]["tensor"] = "statistics of output los";
  write(changed);
  expect_user_error([&] { read_checkpoint(checkpoint); },
                    checkpoint + ": its manifest names a tensor that is absent");
}

}  // namespace
}  // namespace fluid::checkpoint_test
