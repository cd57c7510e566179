#include "executor/host/machine_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "executor/cpu/cpu_device.h"
#include "executor/executor.h"
#include "executor/host/measure_rates.h"
#include "executor/host/peak_loops.h"
#include "ir/atomic_file.h"
#include "tests/support/errors.h"
#include "tests/support/small_programs.h"
#include "tests/support/temp_dir.h"

namespace fluid::machine_file_test {
namespace {

namespace fs = std::filesystem;

/// Runs with $FLUID_MACHINE unset, and collects what the listener receives.
class MachineFile : public ::testing::Test {
 protected:
  MachineFile() {
    if (const char* set = std::getenv("FLUID_MACHINE")) before_ = set;
    unsetenv("FLUID_MACHINE");
    set_machine_listener([this](const std::string& line) { lines_.push_back(line); });
  }
  ~MachineFile() override {
    set_machine_listener({});
    if (before_) setenv("FLUID_MACHINE", before_->c_str(), 1);
  }

  std::vector<fs::path> files() const {
    return {fs::directory_iterator(dir_.path()), fs::directory_iterator()};
  }

  TempDir dir_;
  std::optional<std::string> before_;
  std::vector<std::string> lines_;
};

TEST(RoundedRate, HasTwoDigits) {
  EXPECT_EQ(rounded_rate(1234), 1200);
  EXPECT_EQ(rounded_rate(98.7), 99);
  EXPECT_EQ(rounded_rate(99.6), 100);
  EXPECT_EQ(rounded_rate(4.449), 4.4);
  EXPECT_EQ(rounded_rate(0.0567), 0.057);
}

TEST(PeakLoops, RunOnThisCpu) {
  for (const PeakLoop& loop : peak_loops()) {
    SCOPED_TRACE(loop.name);
    loop.run(3);
    EXPECT_GT(loop.ops, 0);
    EXPECT_TRUE(describe_host(1).gops.contains(loop.name));
  }
}

TEST_F(MachineFile, KeepsOneMeasurement) {
  const TargetDescription cpu = machine_description(1, dir_.path());
  EXPECT_TRUE(cpu.measured);
  EXPECT_TRUE(cpu.has_same_isa(describe_host(1)));
  EXPECT_EQ(cpu.threads, 1);
  for (const auto& rates : {cpu.gops, cpu.gbs}) {
    for (const auto& [name, rate] : rates) {
      EXPECT_GT(rate.one, 0.1) << name;
      EXPECT_GE(rate.all, rate.one) << name;
      EXPECT_EQ(rate.one, rounded_rate(rate.one)) << name;
    }
  }
  ASSERT_EQ(files().size(), 1U) << "no temporary file or lock is left";
  const std::string file = files().front();
  ASSERT_EQ(lines_.size(), 1U);
  EXPECT_NE(lines_[0].find(file), std::string::npos) << lines_[0];
  // Another spelling of the directory reads the file anew.
  std::string text = read_file(file);
  const size_t digit = text.find_first_of("0123456789", text.find("\"memory\""));
  text.insert(digit, "77");
  write_file_atomically(file, text);
  EXPECT_GE(machine_description(3, dir_.path() + "/").gbs.at("memory").one, 770);
  EXPECT_EQ(machine_description(3, dir_.path()).gbs.at("memory").one, cpu.gbs.at("memory").one)
      << "a process plans by the same rates until it ends";
  EXPECT_EQ(lines_.size(), 1U);
  write_file_atomically(file, text.substr(0, text.size() / 2));
  EXPECT_TRUE(machine_description(1, dir_.path() + "//").measured);
  EXPECT_EQ(lines_.size(), 2U) << "a damaged file is replaced";
  EXPECT_TRUE(target_from_json(read_file(file), file).measured);
}

TEST_F(MachineFile, AssumesRatesThatItCannotKeep) {
  EXPECT_EQ(to_json(machine_description(2, "")), to_json(describe_host(2)));
  const std::string file = dir_.file("file");
  std::ofstream(file) << "no directory";
  EXPECT_EQ(to_json(machine_description(2, file + "/cache")), to_json(describe_host(2)));
  ASSERT_EQ(lines_.size(), 1U);
  EXPECT_EQ(lines_[0].find("the CPU is not measured: "), 0U) << lines_[0];
  setenv("FLUID_MACHINE", "", 1);
  EXPECT_EQ(to_json(machine_description(2, dir_.path())), to_json(describe_host(2)));
  EXPECT_EQ(files().size(), 1U);
  expect_user_error([&] { measure_machine_again(file + "/cache"); }, "cannot write '" + file);
  expect_user_error([] { measure_machine_again(""); },
                    "a measurement of the CPU is kept in a cache directory");
}

TEST_F(MachineFile, IsTheFileThatAVariableNames) {
  TargetDescription cpu = describe_host(1);
  cpu.gbs["memory"] = {5, 8};
  const std::string file = dir_.file("machine.json");
  write_file_atomically(file, to_json(cpu));
  setenv("FLUID_MACHINE", file.c_str(), 1);
  EXPECT_EQ(machine_description(2, dir_.path()).bytes_per_second(1e9), 8e9);
  EXPECT_TRUE(lines_.empty());
  cpu.gops["i1_abacus"] = {1, 1};
  write_file_atomically(file, to_json(cpu));
  expect_user_error([&] { machine_description(2, ""); },
                    file +
                        ": FLUID_MACHINE names a target with other instruction sets than this "
                        "machine's CPU, " +
                        cpu.cpu);
}

TEST(CpuRecord, DecidesInTheNextRun) {
  TargetDescription cpu = describe_host(1);
  cpu.measured = true;
  cpu.gbs["memory"] = {5, 8};
  const std::map<std::string, std::string> record = {{kCpuRecord, cpu_tuning_record(cpu)}};
  const Program net(testing::conv_net());
  Executor first(net, fluid::cpu(), {.batch = 8, .threads = 2, .tuning_record = record});
  EXPECT_EQ(first.peak_rates().bytes_per_second, 8e9);
  const auto kept = first.snapshot().tuning_record;
  EXPECT_EQ(kept, record);
  Executor next(net, fluid::cpu(), {.batch = 8, .threads = 1, .tuning_record = kept});
  EXPECT_EQ(next.peak_rates().bytes_per_second, 5e9);
  EXPECT_EQ(next.snapshot().tuning_record, record);
}

TEST(CpuRecord, OfAnotherCpuIsIgnored) {
  TargetDescription cpu = describe_host(1);
  cpu.measured = true;
  EXPECT_TRUE(recorded_description({{kCpuRecord, cpu_tuning_record(cpu)}}, 2)->measured);
  EXPECT_EQ(recorded_description({{kCpuRecord, cpu_tuning_record(cpu)}}, 2)->threads, 2);
  EXPECT_FALSE(recorded_description({}, 2));
  cpu.cpu = "another";
  EXPECT_FALSE(recorded_description({{kCpuRecord, cpu_tuning_record(cpu)}}, 2));
  EXPECT_FALSE(
      recorded_description({{kCpuRecord, cpu_tuning_record(describe_host(1))}}, 2)->measured);
  expect_user_error(
      [] {
        recorded_description({{kCpuRecord, "{"}}, 2);
      },
      "the tuning record: not a JSON object that describes a target");
}

}  // namespace
}  // namespace fluid::machine_file_test
