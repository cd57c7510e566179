#include "executor/host/machine_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>

#include "codegen/object_cache.h"
#include "executor/device/out_of_memory.h"
#include "executor/device/step_times.h"
#include "executor/host/directory_lock.h"
#include "executor/host/measure_rates.h"
#include "ir/atomic_file.h"
#include "ir/error.h"

namespace fluid {
namespace {

constexpr const char* kMachineVariable = "FLUID_MACHINE";

std::mutex listener_mutex;
std::function<void(const std::string&)> listener;

void notify(const std::string& text) {
  const std::scoped_lock lock(listener_mutex);
  if (listener) listener(text);
}

bool is_same_cpu(const TargetDescription& a, const TargetDescription& b) {
  return a.cpu == b.cpu && a.has_same_isa(b);
}

/// Returns the path of this machine's description in `cache_dir`. Machines may share the directory,
/// so the file name contains a hash of the CPU model, number of cores and instruction sets.
std::string path_in(const std::string& cache_dir) {
  const TargetDescription cpu = describe_host(1);
  std::string key = fmt::format("{}, {} cores, {}", cpu.cpu, usable_cores(), cpu.vector_bits);
  for (const auto& [name, rates] : cpu.gops) key += " " + name;
  constexpr size_t kDigits = 16;
  return cache_dir + "/machine-" + ObjectCache::hash_digits(key).substr(0, kDigits) + ".json";
}

/// Reads the measured description from the cache file `path`. Returns nullopt if the file is absent
/// or damaged, or describes another CPU.
std::optional<TargetDescription> read_measured(const std::string& path) {
  std::error_code absent;
  if (!std::filesystem::is_regular_file(path, absent)) return std::nullopt;
  try {
    const TargetDescription found = target_from_json(read_file(path), path);
    if (found.measured && is_same_cpu(found, describe_host(1))) return found;
  } catch (const UserError&) {
    // The file is damaged. The caller measures the CPU again, and replaces the file.
  }
  return std::nullopt;
}

void create_directory(const std::string& path) {
  std::error_code ignored;  // check_writable() reports the error
  std::filesystem::create_directories(path, ignored);
}

/// Measures the CPU and writes the result to `path`. Throws UserError if `path` is not writable.
/// The caller must hold the DirectoryLock.
TargetDescription measure_into(const std::string& path) {
  check_writable(path);
  const int64_t begin = clock_ns();
  const TargetDescription cpu = measure_host();
  const double seconds = static_cast<double>(clock_ns() - begin) / 1e9;
  write_file_atomically(path, to_json(cpu));
  notify(
      fmt::format("measured the CPU in {:.1f} s, once for this machine: {:.0f} GFLOP/s in f32, "
                  "{:.0f} in bf16, {:.0f} GB/s of memory; kept in {}; fluidrun devices "
                  "--measure repeats it",
                  seconds, cpu.ops_per_second(DType::f32) / 1e9,
                  cpu.ops_per_second(DType::bf16) / 1e9, cpu.gbs.at("memory").all, path));
  return cpu;
}

/// Reads the description from the cache file. Measures the CPU if there is no such file. Returns
/// nullopt if measuring fails.
std::optional<TargetDescription> read_or_measure(const std::string& cache_dir) {
  const std::string path = path_in(cache_dir);
  if (auto found = read_measured(path)) return found;
  const auto explain = [](const std::exception& e) {
    notify(std::string("the CPU is not measured: ") + e.what());
  };
  try {
    create_directory(cache_dir);
    const DirectoryLock lock(cache_dir);
    if (auto found = read_measured(path)) return found;
    return measure_into(path);
  } catch (const UserError& e) {  // the directory is not writable
    explain(e);
  } catch (const OutOfMemory& e) {
    explain(e);
  } catch (const std::system_error& e) {  // a thread cannot be started
    explain(e);
  }
  return std::nullopt;
}

/// Returns the result of read_or_measure(). Calls it once per process and directory.
std::optional<TargetDescription> cached_description(const std::string& cache_dir) {
  static std::mutex mutex;
  static std::map<std::string, std::optional<TargetDescription>> known;
  const std::scoped_lock lock(mutex);
  const auto [entry, is_new] = known.try_emplace(cache_dir);
  if (is_new) entry->second = read_or_measure(cache_dir);
  return entry->second;
}

TargetDescription description_in(const std::string& file) {
  TargetDescription given = target_from_json(read_file(file), file);
  const TargetDescription host = describe_host(1);
  if (given.has_same_isa(host)) return given;
  throw UserError(
      fmt::format("{}: {} names a target with other instruction sets than this machine's CPU, {}",
                  file, kMachineVariable, host.cpu));
}

}  // namespace

TargetDescription machine_description(int threads, const std::string& cache_dir) {
  const char* file = std::getenv(kMachineVariable);
  if (file != nullptr ? *file == '\0' : cache_dir.empty()) return describe_host(threads);
  std::optional<TargetDescription> cpu;
  if (file != nullptr) {
    cpu = description_in(file);
  } else {
    cpu = cached_description(cache_dir);
  }
  return cpu ? cpu->with_threads(threads) : describe_host(threads);
}

void measure_machine_again(const std::string& cache_dir) {
  if (cache_dir.empty()) throw UserError("a measurement of the CPU is kept in a cache directory");
  create_directory(cache_dir);
  const DirectoryLock lock(cache_dir);
  measure_into(path_in(cache_dir));
}

void set_machine_listener(std::function<void(const std::string&)> next) {
  const std::scoped_lock lock(listener_mutex);
  listener = std::move(next);
}

std::string cpu_tuning_record(const TargetDescription& description) {
  return to_json(description.measured ? description.with_threads(1) : describe_host(1));
}

std::optional<TargetDescription> recorded_description(
    const std::map<std::string, std::string>& record, int threads) {
  const auto entry = record.find(kCpuRecord);
  if (entry == record.end()) return std::nullopt;
  const TargetDescription cpu = target_from_json(entry->second, "the tuning record");
  if (!is_same_cpu(cpu, describe_host(1))) return std::nullopt;
  return cpu.measured ? cpu.with_threads(threads) : describe_host(threads);
}

}  // namespace fluid
