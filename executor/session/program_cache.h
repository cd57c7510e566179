#pragma once

#include <memory>
#include <optional>
#include <string>

#include "codegen/object_cache.h"
#include "executor/device/device.h"
#include "ir/graph.h"
#include "passes/options.h"

namespace fluid {

/// A program that an earlier process compiled.
struct CachedProgram {
  std::unique_ptr<ir::Program> program;  ///< the program after the pass pipeline
  std::string values_key;                ///< CompiledProgram::values_key
};

/// A disk cache of programs after the pass pipeline, in the kernel cache. The key of an entry is a
/// hash of all that determines the result of the passes: the recorded program, the options, the
/// device and this build of Fluid. Files and errors are those of ObjectCache: a damaged entry means
/// that the passes run, and replaces it.
class ProgramCache {
 public:
  /// `build`: build_id(). The cache is disabled if `directory` or `build` is empty, or if the
  /// device has no fingerprint.
  ProgramCache(const std::string& directory, const Device& device, const std::string& build);

  /// Returns a hash of `program`; empty if the cache is disabled.
  std::string identity_of(const ir::Program& program) const;
  /// Returns the key of the program that the passes make of a program, which `identity` determines;
  /// empty if the cache is disabled.
  std::string key_of(const std::string& identity, const Options& options) const;
  /// Returns the entry `key`, or nullopt if there is none. An empty key has no entry.
  std::optional<CachedProgram> find(const std::string& key) const;
  /// Writes an entry. `program`: serialize_program() of the program after the passes.
  void store(const std::string& key, const std::string& program,
             const std::string& values_key) const;

 private:
  ObjectCache objects_;
  std::string fingerprint_;  ///< of the device and the build; empty if the cache is disabled
};

}  // namespace fluid
