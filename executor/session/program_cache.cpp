#include "executor/session/program_cache.h"

#include <fmt/format.h>

#include <type_traits>
#include <utility>

#include "codegen/compiler.h"
#include "ir/error.h"
#include "ops/program_file.h"

namespace fluid {
namespace {

/// A text of values that differs if one of the values differs. A structured binding lists the
/// members of a struct, so that a new member does not compile until it is added here.
class ValuesText {
 public:
  template <class... T>
  void add_all(const T&... values) {
    (add(values), ...);
  }
  const std::string& text() const { return text_; }

  void add(const Options& options) {
    const auto& [mode, recipe, batch, sequence_length, dtype, amp, micro_batch, scale_partial_loss,
                 global_batch, world, force_collectives, rank, shard_optimizer, buckets, sync_bn,
                 feeds, init_variables, fuse, use_libraries, tf32, check_finite, guard_plan,
                 verify_each] = options;
    add_all(mode, recipe, batch, sequence_length, dtype, amp, micro_batch, scale_partial_loss,
            global_batch, world, force_collectives, rank, shard_optimizer, buckets, sync_bn, feeds,
            init_variables, fuse, use_libraries, tf32, check_finite, guard_plan, verify_each);
  }

 private:
  template <class T>
  requires std::is_arithmetic_v<T>
  void add(T number) { text_ += fmt::format("{},", number); }
  template <class T>
  requires std::is_enum_v<T>
  void add(T value) { add(static_cast<int>(value)); }
  void add(const std::string& value) { text_ += fmt::format("{}:{},", value.size(), value); }
  template <class T>
  void add(const std::optional<T>& value) {
    add(value.has_value());
    if (value) add(*value);
  }
  template <class Strings>
  requires std::is_same_v<typename Strings::value_type, std::string>
  void add(const Strings& values) {
    add(values.size());
    for (const std::string& value : values) add(value);
  }
  void add(const LossScale& scale) {
    const auto& [initial, growth, backoff, interval, floor, ceiling, dynamic] = scale;
    add_all(initial, growth, backoff, interval, floor, ceiling, dynamic);
  }
  void add(const AmpOptions& amp) {
    const auto& [dtype, loss_scale, level, in_f32, in_half] = amp;
    add_all(dtype, loss_scale, level, in_f32, in_half);
  }
  void add(const Buckets& buckets) {
    const auto& [first_bytes, bytes, dtype] = buckets;
    add_all(first_bytes, bytes, dtype);
  }

  std::string text_;
};

std::string fingerprint_of(const std::string& directory, const Device& device,
                           const std::string& build) {
  if (directory.empty() || build.empty()) return "";
  const std::string text = device.fingerprint();
  return text.empty() ? "" : fmt::format("program of build {}\n{}\n", build, text);
}

}  // namespace

ProgramCache::ProgramCache(const std::string& directory, const Device& device,
                           const std::string& build)
    : objects_(directory, CompilerOptions().cache_limit),
      fingerprint_(fingerprint_of(directory, device, build)) {}

std::string ProgramCache::identity_of(const ir::Program& program) const {
  return fingerprint_.empty() ? "" : ObjectCache::hash_digits(serialize_program(program));
}

std::string ProgramCache::key_of(const std::string& identity, const Options& options) const {
  if (fingerprint_.empty()) return "";
  ValuesText text;
  text.add(options);
  return "k" + ObjectCache::hash_digits(fingerprint_ + text.text() + '\n' + identity);
}

// An entry holds the CachedProgram::values_key, a line feed, and the program.
std::optional<CachedProgram> ProgramCache::find(const std::string& key) const {
  if (key.empty()) return std::nullopt;
  const std::optional<std::string> entry = objects_.find(key);
  if (!entry) return std::nullopt;
  const size_t line = entry->find('\n');
  if (line == std::string::npos) return std::nullopt;
  try {
    return CachedProgram{deserialize_program(std::string_view(*entry).substr(line + 1), key),
                         entry->substr(0, line)};
  } catch (const UserError&) {
    return std::nullopt;  // the program exceeds a limit of the file format
  }
}

void ProgramCache::store(const std::string& key, const std::string& program,
                         const std::string& values_key) const {
  if (key.empty()) return;
  objects_.store(key, values_key + '\n' + program);
  objects_.evict_if_due();
}

}  // namespace fluid
