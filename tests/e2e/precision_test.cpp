// Compares networks trained in mixed precision with networks trained in f32. The runs take hours;
// tests/golden/accuracy.json has all results.

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "frontend/examples/classifier.h"
#include "frontend/examples/resnet.h"
#include "tests/support/data_folder.h"
#include "tests/support/training.h"

namespace fluid::precision_test {
namespace {

constexpr uint64_t kSeeds = 3;
constexpr const char* kTable = FLUID_SOURCE_DIR "/tests/golden/accuracy.json";

struct Precision {
  const char* name;
  std::optional<AmpOptions> amp;
};

const Precision kPrecisions[] = {
    {"f32", {}},
    {"bf16 o1", AmpOptions{.dtype = bf16}},
    {"bf16 o2", AmpOptions{.dtype = bf16, .level = AmpLevel::o2}},
    {"f16 o1", AmpOptions{.dtype = f16}},
    {"f16 o2", AmpOptions{.dtype = f16, .level = AmpLevel::o2}},
};

struct Task {
  Program program;
  Dataset seen, unseen;
  int64_t batch;
  int64_t epochs;
};

Dataset rows(const Dataset& data, int64_t begin, int64_t end) {
  Dataset part;
  for (const auto& [name, all] : data.columns) {
    std::vector<int64_t> shape = all.shape();
    const int64_t bytes = all.bytes() / shape[0];
    shape[0] = end - begin;
    Tensor some(all.dtype(), shape);
    std::memcpy(some.data(), static_cast<const std::byte*>(all.data()) + begin * bytes,
                static_cast<size_t>((end - begin) * bytes));
    part.columns.emplace_back(name, std::move(some));
  }
  return part;
}

/// At the example's constant rate a run may end at chance, by no more than how sums are rounded:
/// its loss leaps, in generated kernels and in libraries' alike, and its units die.
Task mnist_cnn_task() {
  Program net = mnist_cnn_program(0.1);
  minimize(net.ir().main().outputs[0].value, Adam{.lr = 0.02},
           {.schedule = Cosine{.steps = 1407, .warmup = 100}});
  const std::string mnist = "mnist:" + mnist_directory();
  return {std::move(net), open_data(mnist, "train").dataset(), open_data(mnist, "test").dataset(),
          128, 3};
}

/// Uses the available CIFAR-10 images: the last quarter for validation.
Task resnet18_task() {
  Program net("resnet18");
  const Value loss = record_classifier(net, resnet18(cifar10_images(net)));
  minimize(loss, Momentum{.lr = 0.02, .momentum = 0.9, .weight_decay = 5e-4},
           {.schedule = Cosine{.steps = 470, .warmup = 20}});
  const Dataset all = open_data("cifar10:" + data_folder() + "/cifar10").dataset();
  return {std::move(net), rows(all, 0, 3000), rows(all, 3000, 4000), 32, 5};
}

struct Network {
  const char* name;
  const char* data;  ///< below the data folder
  Task (*task)();
  double points;  ///< percentage points of accuracy that half precision may cost
};

const Network kNetworks[] = {{"mnist_cnn", "mnist", mnist_cnn_task, 0.01},
                             {"resnet18", "cifar10", resnet18_task, 0.02}};

double accuracy_after(const Task& task, const Precision& precision, uint64_t seed) {
  Reader seen(task.seen, {.batch = task.batch, .shuffle_seed = seed + 1});
  Reader unseen(task.unseen, {.batch = 500});
  Executor exe(task.program, cpu(), {.seed = seed, .precision = {.amp = precision.amp}});
  exe.prepare({.train = seen.batch_sizes(), .eval = unseen.batch_sizes()});
  for (int64_t epoch = 0; epoch < task.epochs; ++epoch) {
    for (const Batch& batch : seen) exe.run(batch);
  }
  double sum = 0, weight = 0;
  for (const Batch& batch : unseen) {
    const OutputViews out = exe.eval(batch);
    sum += out.find("accuracy").statistics.at(0);
    weight += out.find("accuracy").statistics.at(1);
  }
  return sum / weight;
}

nlohmann::ordered_json table() {
  std::ifstream file(kTable);
  return file ? nlohmann::ordered_json::parse(file) : nlohmann::ordered_json::object();
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

double mean_in_table(const Network& network, const char* precision) {
  return mean(table().at(network.name).at(precision).get<std::vector<double>>());
}

void write_run(const Network& network, const Precision& precision, uint64_t seed, double reached) {
  nlohmann::ordered_json all = table();
  auto& runs = all[network.name][precision.name];
  if (runs.size() <= seed) runs.push_back(0);
  runs.at(seed) = reached;
  std::ofstream(kTable) << all.dump(1) << "\n";
}

using Choice = std::tuple<Network, Precision>;

std::string name_of(const ::testing::TestParamInfo<Choice>& info) {
  std::string name = std::get<0>(info.param).name + std::string("_") + std::get<1>(info.param).name;
  std::ranges::replace(name, ' ', '_');
  return name;
}

class LongPrecision : public ::testing::TestWithParam<Choice> {};

/// With FLUID_UPDATE_GOLDENS it writes the table.
TEST_P(LongPrecision, ReachesWhatF32Reaches) {
  const auto& [network, precision] = GetParam();
  const std::filesystem::path data = std::filesystem::path(data_folder()) / network.data;
  if (!std::filesystem::exists(data)) GTEST_SKIP() << "no files in " << data << "; set FLUID_DATA";
  const Task task = network.task();
  std::vector<double> reached;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    reached.push_back(accuracy_after(task, precision, seed));
    std::printf("%s, %s, seed %d: %.4f\n", network.name, precision.name, static_cast<int>(seed),
                reached.back());
    std::fflush(stdout);
    if (std::getenv("FLUID_UPDATE_GOLDENS") != nullptr) {
      write_run(network, precision, seed, reached.back());
    }
  }
  EXPECT_GE(mean(reached), mean_in_table(network, "f32") - network.points);
}

INSTANTIATE_TEST_SUITE_P(Long, LongPrecision,
                         ::testing::Combine(::testing::ValuesIn(kNetworks),
                                            ::testing::ValuesIn(kPrecisions)),
                         name_of);

TEST(Precision, TheTableHoldsAllRunsWithinTheirBounds) {
  for (const Network& network : kNetworks) {
    for (const Precision& precision : kPrecisions) {
      SCOPED_TRACE(std::string(network.name) + ", " + precision.name);
      EXPECT_EQ(table().at(network.name).at(precision.name).size(), kSeeds);
      EXPECT_GE(mean_in_table(network, precision.name),
                mean_in_table(network, "f32") - network.points);
    }
  }
}

}  // namespace
}  // namespace fluid::precision_test
