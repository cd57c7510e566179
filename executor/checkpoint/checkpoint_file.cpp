#include "executor/checkpoint/checkpoint_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "frontend/files/byte_source.h"
#include "frontend/files/safetensors.h"
#include "ir/atomic_file.h"
#include "ir/error.h"
#include "ir/number.h"
#include "ir/text.h"

namespace fluid {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kManifest = "manifest.json";
constexpr const char* kTraining = "training.safetensors";
constexpr int64_t kVersion = 3;

std::string hash_of(const ByteSource& bytes) { return fmt::format("{:016x}", bytes.hash()); }

/// Adds the hash of the manifest's text to the manifest, and returns the new text.
std::string append_checksum(Json manifest) {
  manifest["hash"] = hash_of(MemoryBytes(manifest.dump(1)));
  return manifest.dump(1) + "\n";
}

Json described(const std::string& directory, const char* file) {
  const FileBytes bytes(directory + "/" + file);
  return {{"bytes", bytes.size()}, {"hash", hash_of(bytes)}};
}

/// Converts a training state to JSON. Floats become strings, because JSON has no NaN and its
/// numbers may lose precision.
Json json_of(const TrainingState& state) {
  const Json position = {{"epoch", state.position.epoch}, {"sample", state.position.sample}};
  Json json = {{"steps", state.steps},
               {"position", position},
               {"epochs", state.epochs},
               {"figures", Json::array()},
               {"options", state.options}};
  for (const TrainingState::OutputStatistics& s : state.output_statistics) {
    Json numbers = Json::array();
    for (const double x : s.statistics) numbers.push_back(ir::float_text(x));
    json["figures"].push_back({{"name", s.name}, {"statistics", std::move(numbers)}});
  }
  if (state.best) {
    json["best"] = {{"figure", ir::float_text(state.best->value)}, {"epoch", state.best->epoch}};
  }
  return json;
}

double float_in(const Json& json) {
  const std::optional<double> value = parse_number<double>(json.get<std::string>());
  if (!value) throw UserError("its manifest lacks a number");
  return *value;
}

TrainingState state_of(const Json& json) {
  TrainingState state;
  state.steps = json.at("steps");
  const Json& position = json.at("position");
  state.position = {position.at("epoch"), position.at("sample")};
  state.epochs = json.at("epochs");
  state.options = json.at("options");
  for (const Json& s : json.at("figures")) {
    std::vector<double> statistics;
    for (const Json& x : s.at("statistics")) statistics.push_back(float_in(x));
    state.output_statistics.push_back({s.at("name"), std::move(statistics)});
  }
  if (json.contains("best")) {
    const Json& best = json.at("best");
    state.best = {.value = float_in(best.at("figure")), .epoch = best.at("epoch")};
  }
  return state;
}

VariableKind kind_named(const std::string& name) {
  for (const VariableKind kind : {VariableKind::recorded, VariableKind::optimizer}) {
    if (name == name_of(kind)) return kind;
  }
  return VariableKind::control;
}

/// Reads the tensors of `file` after checking its size and hash against the manifest.
TensorFile tensors_of(const std::string& directory, const char* file, const Json& manifest) {
  const FileBytes bytes(directory + "/" + file);
  const Json& expected = manifest.at("files").at(file);
  if (expected.at("bytes") != bytes.size() || expected.at("hash") != hash_of(bytes)) {
    throw UserError(fmt::format("{} is damaged: its bytes are not those of the manifest", file));
  }
  return parse_safetensors(bytes, file);
}

Json manifest_of(const std::string& directory) {
  Json manifest = Json::parse(read_file(directory + "/" + kManifest));
  const std::string hash = manifest.at("hash");
  manifest.erase("hash");
  if (hash != hash_of(MemoryBytes(manifest.dump(1)))) {
    throw UserError("its manifest is damaged: the hash differs");
  }
  if (manifest.at("version") != kVersion) {
    throw UserError(
        fmt::format("its manifest is of version {}, which this build of Fluid does not read",
                    manifest.at("version").dump()));
  }
  return manifest;
}

Checkpoint read_files(const std::string& directory) {
  const Json manifest = manifest_of(directory);
  const Json& program = manifest.at("program");
  // The members are assigned one by one because of a bug in GCC 12: if an initializer of an
  // aggregate throws, the other members are destroyed twice.
  Checkpoint checkpoint;
  checkpoint.path = directory;
  checkpoint.snapshot.program = program.at("name");
  checkpoint.snapshot.program_hash = program.at("hash");
  checkpoint.snapshot.options = manifest.at("options");
  checkpoint.snapshot.tuning_record =
      manifest.value("decisions", checkpoint.snapshot.tuning_record);
  checkpoint.state = state_of(manifest.at("state"));
  checkpoint.best = manifest.at("best");
  const Json& kinds = manifest.at("variables");
  for (const char* file : {kCheckpointParameters, kTraining}) {
    TensorFile read = tensors_of(directory, file, manifest);
    if (file == kCheckpointParameters) {
      checkpoint.snapshot.metadata = ParameterMetadata::parse(read.metadata, file);
    }
    for (auto& [name, tensor] : read.tensors) {
      checkpoint.snapshot.variables.push_back(
          {name, kind_named(kinds.at(name)), std::move(tensor)});
    }
  }
  return checkpoint;
}

}  // namespace

void write_checkpoint(const std::string& path, const Snapshot& snapshot, const TrainingState& state,
                      bool best) {
  std::vector<std::pair<std::string, Tensor>> parameters, training;
  Json kinds = Json::object();
  for (const SnapshotVariable& saved : snapshot.variables) {
    const bool recorded = saved.kind == VariableKind::recorded;
    (recorded ? parameters : training).emplace_back(saved.name, saved.value);
    kinds[saved.name] = name_of(saved.kind);
  }
  write_safetensors(path + "/" + kCheckpointParameters, parameters, snapshot.metadata.entries());
  write_safetensors(path + "/" + kTraining, training);
  const Json manifest = {{"version", kVersion},
                         {"program", {{"name", snapshot.program}, {"hash", snapshot.program_hash}}},
                         {"options", snapshot.options},
                         {"decisions", snapshot.tuning_record},
                         {"state", json_of(state)},
                         {"best", best},
                         {"variables", kinds},
                         {"files",
                          {{kCheckpointParameters, described(path, kCheckpointParameters)},
                           {kTraining, described(path, kTraining)}}}};
  write_file_atomically(path + "/" + kManifest, append_checksum(manifest));
}

Checkpoint read_checkpoint(const std::string& path) {
  try {
    return read_files(path);
  } catch (const nlohmann::json::exception&) {
    throw UserError(path + ": its manifest is damaged");
  } catch (const UserError& e) {
    throw UserError(path + ": " + e.what());
  }
}

std::string serialize_training_state(const TrainingState& state) { return json_of(state).dump(); }

TrainingState parse_training_state(const std::string& text) { return state_of(Json::parse(text)); }

}  // namespace fluid
