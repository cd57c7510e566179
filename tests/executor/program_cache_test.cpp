// A process reads the programs that an earlier process compiled, instead of running the passes.

#include "executor/session/program_cache.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "executor/cpu/cpu_device.h"
#include "executor/cpu_libraries/library.h"
#include "executor/host/build_id.h"
#include "executor/quantization/quantize.h"
#include "frontend/fluid.h"
#include "ir/print.h"
#include "ops/program_file.h"
#include "tests/support/golden_training.h"
#include "tests/support/processes.h"
#include "tests/support/small_programs.h"
#include "tests/support/temp_dir.h"

namespace fluid::program_cache_test {
namespace {

namespace fs = std::filesystem;

/// A convolution whose folded filters take 1.1 MiB, a recurrent layer and dropout.
Program network(double slope = 0.1) {
  Program net("network");
  const Value x = net.data("x", {kBatch, 128, 4, 4}, f32);
  Value h = batch_norm(conv2d(x, {.filters = 256, .kernel = 3, .bias = false}));
  h = dropout(leaky_relu(h, {.negative_slope = slope}), {.p = 0.5});
  h = lstm(reshape(h, {kBatch, 4, 256}), {.units = 8}).output;
  net.output("y", h);
  minimize(mean(square(h - 1)), Adam{.lr = 0.1});
  return net;
}

Batch batch_of(int64_t size) {
  return {size, {{"x", testing::golden_tensor(1, {size, 128, 4, 4}).cast(f32)}}, 0};
}

struct Counts {
  int programs = 0, cached = 0;
  bool operator==(const Counts&) const = default;
};

Counts counts(const Executor& exe) {
  const CompileReport report = exe.compile_report();
  return {report.programs, report.cached_programs};
}

/// The programs that a predict step of 2 samples has: itself, its weights and the initialisers.
constexpr int kPrograms = 3;

/// Sets an environment variable to "". The destructor restores its value.
class EmptyVariable {
 public:
  explicit EmptyVariable(const char* name) : name_(name) {
    if (const char* value = std::getenv(name); value != nullptr) value_ = value;
    setenv(name, "", 1);
  }
  ~EmptyVariable() { value_ ? setenv(name_, value_->c_str(), 1) : unsetenv(name_); }
  EmptyVariable(const EmptyVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> value_;
};

class CachedPrograms : public ::testing::Test {
 protected:
  ExecutorOptions options() const { return {.seed = 5, .cache_dir = dir_.path()}; }
  Counts prepare(const Program& net, const ExecutorOptions& options,
                 const BatchSizes& sizes = {.predict = {2}}) const {
    Executor exe(net, cpu(), options);
    exe.prepare(sizes);
    return counts(exe);
  }
  std::vector<fs::path> entries() const {
    std::vector<fs::path> files;
    for (const auto& file : fs::directory_iterator(dir_.path())) {
      if (file.path().extension() == ".o") files.push_back(file.path());
    }
    return files;
  }

  EmptyVariable kernel_cache_{"FLUID_KERNEL_CACHE"}, machine_{"FLUID_MACHINE"};
  TempDir dir_;
};

Program mlp() {
  Program net("mlp");
  const Value x = net.data("x", {kBatch, 128, 4, 4}, f32);
  net.output("y", linear(linear(flatten(x), {.units = 40, .act = Act::relu}), {.units = 3}));
  minimize(mean(square(net.ir().main().outputs[0].value)), SGD{.lr = 0.1});
  return net;
}

/// The outputs of predict, eval and training steps, and the text of their programs.
struct Steps {
  std::vector<float> outputs;
  std::string text;
  Counts counts;
  bool operator==(const Steps&) const = default;
};

/// Runs predict and eval steps, and a training step unless the program is quantized.
Steps run_steps(const Program& net, const ExecutorOptions& options,
                const QuantizedProgram* quantized = nullptr) {
  Executor exe(net, cpu(), options);
  if (quantized != nullptr) set_parameters(exe, *quantized);
  Steps steps;
  const auto keep = [&](const OutputViews& views) {
    const Tensor y = views["y"].copy().cast(f32);
    steps.outputs.insert(steps.outputs.end(), y.as<float>().begin(), y.as<float>().end());
  };
  std::vector<std::pair<Mode, int64_t>> modes = {{Mode::predict, 2}, {Mode::eval, 2}};
  keep(exe.predict(batch_of(2)));
  if (quantized == nullptr) {
    keep(exe.run(batch_of(3)));
    modes.emplace_back(Mode::train, 3);
  }
  keep(exe.eval(batch_of(2)));
  keep(exe.predict(batch_of(2)));
  for (const auto& [mode, batch] : modes) steps.text += exe.text(mode, batch);
  steps.counts = counts(exe);
  return steps;
}

void expect_equal_bits(const Program& net, ExecutorOptions options, const std::string& cache,
                       const QuantizedProgram* quantized = nullptr) {
  const Steps plain = run_steps(net, options, quantized);
  options.cache_dir = cache;
  Steps first = run_steps(net, options, quantized), second = run_steps(net, options, quantized);
  EXPECT_GT(plain.counts.programs, 2);
  EXPECT_EQ(first.counts, plain.counts);
  EXPECT_EQ(second.counts, (Counts{0, plain.counts.programs}));
  first.counts = second.counts = plain.counts;
  EXPECT_EQ(first, plain);
  EXPECT_EQ(second, plain);
}

TEST_F(CachedPrograms, ComputeTheSameBits) {
  for (const bool bf16 : {false, true}) {
    SCOPED_TRACE(bf16 ? "bf16" : "f32");
    ExecutorOptions o{.seed = 5};
    if (bf16) o.precision.amp = AmpOptions{};
    expect_equal_bits(mlp(), o, dir_.path());
    expect_equal_bits(network(), o, dir_.path());
  }
}

TEST_F(CachedPrograms, ComputeTheSameBitsFromIntegers) {
  const Program net = mlp();
  Dataset data;
  data.columns = batch_of(8).columns;
  Reader calibration(data, {.batch = 4});
  Executor exe(net, cpu(), {.seed = 5});
  const QuantizedProgram quantized = quantize(exe, net, {.calibration = &calibration});
  expect_equal_bits(quantized.program, {.seed = 5}, dir_.path(), &quantized);
}

TEST_F(CachedPrograms, MayBeWrittenByTwoProcessesAtOnce) {
  const auto predict = [&](const World&) {
    const Steps steps = run_steps(network(), options());
    return ObjectCache::hash_digits(steps.text + fmt::format("{}", fmt::join(steps.outputs, " ")));
  };
  const std::vector<std::string> results = testing::Ranks(2, predict).results();  // forks first
  EXPECT_EQ(results, std::vector(2, predict({})));
  EXPECT_EQ(run_steps(network(), options()).counts.programs, 0);
  for (const auto& file : fs::directory_iterator(dir_.path()))
    EXPECT_EQ(file.path().string().find(".tmp"), std::string::npos) << file.path();
}

TEST_F(CachedPrograms, AreOfEqualMicroBatchesAndPrecision) {
  ExecutorOptions o = options();
  o.micro_batches = 3;
  o.precision.amp = AmpOptions{.level = AmpLevel::o2};
  const Counts first = prepare(network(), o, {.train = {7}});
  EXPECT_GT(first.programs, 3);
  EXPECT_EQ(prepare(network(), o, {.train = {7}}), (Counts{0, first.programs}));
}

TEST_F(CachedPrograms, AreNotUsedForOthers) {
  EXPECT_EQ(prepare(network(), options()), (Counts{kPrograms, 0}));
  EXPECT_EQ(prepare(network(), options()), (Counts{0, kPrograms}));
  EXPECT_GT(prepare(network(0.2), options()).programs, 0) << "an attribute";
  EXPECT_GT(prepare(network(), options(), {.predict = {3}}).programs, 0) << "the batch";
  EXPECT_GT(prepare(network(), options(), {.eval = {2}}).programs, 0) << "the kind of step";
  ExecutorOptions without_libraries = options();
  without_libraries.debug.libraries = false;
  EXPECT_GT(prepare(network(), without_libraries).programs, 0) << "an option";
  EXPECT_EQ(prepare(network(), options()), (Counts{0, kPrograms}));
}

TEST_F(CachedPrograms, AreNotUsedOnAnotherMachine) {
  prepare(network(), options());
  TargetDescription machine = describe_host(1);
  machine.gbs.at("memory").all *= 2;
  machine.gbs.at("memory").one *= 2;
  const std::string file = dir_.file("machine.json");
  std::ofstream(file) << to_json(machine);
  setenv("FLUID_MACHINE", file.c_str(), 1);
  EXPECT_EQ(prepare(network(), options()).programs, kPrograms);
  setenv("FLUID_MACHINE", "", 1);
  EXPECT_EQ(prepare(network(), options()).programs, 0);
}

TEST_F(CachedPrograms, AreNotKeptWithoutADirectoryOrWithTimedKernels) {
  for (ExecutorOptions o : {ExecutorOptions{.seed = 5}, options()}) {
    o.cpu.tune = !o.cache_dir.empty();
    for (int i = 0; i < 2; ++i) EXPECT_EQ(prepare(network(), o), (Counts{kPrograms, 0}));
  }
}

TEST_F(CachedPrograms, OfADamagedFileAreCompiledAgain) {
  for (const char* damage : {"cut", "empty", "flipped"}) {
    SCOPED_TRACE(damage);
    prepare(network(), options());
    for (const fs::path& path : entries()) {
      const auto size = fs::file_size(path);
      if (std::string(damage) == "cut") fs::resize_file(path, size / 2);
      if (std::string(damage) == "empty") fs::resize_file(path, 0);
      if (std::string(damage) == "flipped") {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekg(static_cast<std::streamoff>(size) / 2);
        const auto byte = static_cast<char>(file.get() ^ 1);
        file.seekp(static_cast<std::streamoff>(size) / 2);
        file.put(byte);
      }
    }
    EXPECT_EQ(prepare(network(), options()), (Counts{kPrograms, 0}));
    EXPECT_EQ(prepare(network(), options()), (Counts{0, kPrograms}));
  }
}

/// If the cache has the precomputed weights, no kernel that computes them is prepared.
TEST_F(CachedPrograms, LeaveKernelsOfKnownWeightsUncompiled) {
  const std::string file = dir_.file("p.safetensors");
  Executor(network(), cpu(), options()).save(file);
  const auto kernels = [&](const std::function<void(Executor&)>& use) {
    Executor exe(network(), cpu(), options());
    exe.load(file);
    exe.prepare({.predict = {2}});
    use(exe);
    const CompileReport report = exe.compile_report();
    return report.kernels + report.cache_hits;
  };
  const auto predict = [](Executor& exe) { exe.predict(batch_of(2)); };
  const int all = kernels(predict);
  EXPECT_LT(kernels(predict), all);
  const auto change_and_predict = [&](Executor& exe) {
    const std::string name = exe.parameters().front();
    exe.set_parameter(name, exe.parameter(name).copy());
    exe.predict(batch_of(2));
  };
  EXPECT_EQ(kernels(change_and_predict), all);
}

/// Options that each differ from the default in one field.
std::vector<Options> different_options() {
  std::vector<Options> all(24);
  size_t next = 0;
  all[++next].mode = Mode::eval;
  all[++next].recipe = "r";
  all[++next].batch = 2;
  all[++next].sequence_length = 2;
  all[++next].dtype = f64;
  all[++next].amp.emplace();
  all[++next].amp.emplace(AmpOptions{.loss_scale = {.growth = 3}});
  all[++next].amp.emplace(AmpOptions{.in_f32 = {"a", "b"}});
  all[++next].amp.emplace(AmpOptions{.in_half = {"a", "b"}});
  all[++next].micro_batch = MicroBatchKind::last;
  all[++next].scale_partial_loss = true;
  all[++next].global_batch = 3;
  all[++next].world = 2;
  all[++next].force_collectives = true;
  all[++next].rank = 1;
  all[++next].shard_optimizer = true;
  all[++next].buckets.dtype = bf16;
  all[++next].sync_bn = true;
  all[++next].feeds = {"a", "b"};
  all[++next].feeds = {"a1:b"};
  all[++next].init_variables = {"a", "b"};
  all[++next].use_libraries = false;
  all[++next].check_finite = true;
  return all;
}

std::string key_of(const std::string& directory, const Device& device, const ir::Program& program,
                   const Options& options = {}, const std::string& build = build_id()) {
  const ProgramCache cache(directory, device, build);
  return cache.key_of(cache.identity_of(program), options);
}

TEST(ProgramCache, KeysDifferForDifferentOptionsDevicesProgramsAndBuilds) {
  const TempDir dir;
  const auto program = testing::conv_net();
  std::set<std::string> keys;
  size_t wanted = 0;
  for (const Options& options : different_options()) {
    const auto device = cpu_device({.threads = 2});
    keys.insert(key_of(dir.path(), *device, *program, options));
    EXPECT_EQ(keys.size(), ++wanted) << "options " << wanted - 1;
  }
  TargetDescription small = describe_host(2);
  small.l2_bytes /= 2;
  for (const CpuDeviceOptions& options :
       {CpuDeviceOptions{.threads = 1},
        CpuDeviceOptions{.threads = 2, .baseline_cpu = {{describe_host(2), "x86-64-v2"}}},
        CpuDeviceOptions{.threads = 2, .baseline_cpu = {{small, "x86-64-v2"}}}}) {
    const auto device = cpu_device(options);
    keys.insert(key_of(dir.path(), *device, *program));
    EXPECT_EQ(keys.size(), ++wanted);
  }
  const auto device = cpu_device({.threads = 2});
  const auto other = testing::conv_net({.hidden = 33});
  keys.insert(key_of(dir.path(), *device, *other));
  EXPECT_EQ(keys.size(), ++wanted);
  const auto renamed = program->clone();
  renamed->main().ops.back()->scope += "x";
  keys.insert(key_of(dir.path(), *device, *renamed));
  EXPECT_EQ(keys.size(), ++wanted);
  keys.insert(key_of(dir.path(), *device, *program, {}, "another build"));
  EXPECT_EQ(keys.size(), ++wanted);
  keys.insert(key_of(dir.path(), *device, *program->clone()));
  EXPECT_EQ(keys.size(), wanted);
}

TEST(ProgramCache, HoldsProgramsOnly) {
  const TempDir dir;
  const auto device = cpu_device({.threads = 2});
  const ProgramCache cache(dir.path(), *device, build_id());
  const auto program = testing::conv_net();
  const std::string key = cache.key_of(cache.identity_of(*program), {});
  EXPECT_FALSE(cache.find(key));
  EXPECT_FALSE(cache.find(""));
  EXPECT_EQ(key_of("", *device, *program), "");
  EXPECT_EQ(key_of(dir.path(), *device, *program, {}, ""), "") << "a build without an ID";
  cache.store(key, serialize_program(*program), "values");
  const auto found = cache.find(key);
  ASSERT_TRUE(found);
  EXPECT_EQ(ir::print(*found->program), ir::print(*program));
  EXPECT_EQ(found->values_key, "values");
  cache.store(key, "no program", "");
  EXPECT_FALSE(cache.find(key));
  ObjectCache(dir.path(), 1 << 20).store(key, "no line");
  EXPECT_FALSE(cache.find(key));
}

TEST(ProgramCache, KeysFollowTheSettingsOfLibraries) {
  const auto device = cpu_device({.threads = 2});
  EXPECT_NE(device->fingerprint().find(library_settings()), std::string::npos);
  EXPECT_EQ(library_settings().empty(), library_version().empty());
}

TEST(BuildId, IsOfThisProgram) {
  EXPECT_GE(build_id().size(), 16u);
  EXPECT_EQ(build_id().find_first_not_of("0123456789abcdef"), std::string::npos);
}

}  // namespace
}  // namespace fluid::program_cache_test
