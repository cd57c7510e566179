#include "executor/checkpoint/checkpoint_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

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
constexpr int64_t kVersion = 4;

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

/// Converts a training state without its output statistics to JSON. Floats become strings, because
/// JSON has no NaN and its numbers may lose precision.
Json json_of(const TrainingState& state) {
  const Json position = {{"epoch", state.position.epoch}, {"sample", state.position.sample}};
  Json json = {{"steps", state.steps},
               {"position", position},
               {"epochs", state.epochs},
               {"best_criterion", state.best_criterion},
               {"monitored_since", state.monitored_since},
               {"recipe_steps", state.recipe_steps},
               {"options", state.options}};
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
  state.best_criterion = json.at("best_criterion");
  state.monitored_since = json.at("monitored_since");
  state.recipe_steps = json.at("recipe_steps");
  state.options = json.at("options");
  if (json.contains("best")) {
    const Json& best = json.at("best");
    state.best = {.value = float_in(best.at("figure")), .epoch = best.at("epoch")};
  }
  return state;
}

/// Adds the output statistics to the tensors of a file. A metric such as roc_auc has a row for each
/// sample, too many for the manifest. Returns [{"output": name, "tensor": name in the file}, ...].
Json add_statistics(std::vector<std::pair<std::string, Tensor>>& tensors,
                    const std::vector<TrainingState::OutputStatistics>& statistics) {
  Json names = Json::array();
  for (const TrainingState::OutputStatistics& s : statistics) {
    std::string name = "statistics of output " + s.name;
    const auto is_taken = [&](const auto& tensor) { return tensor.first == name; };
    while (std::ranges::any_of(tensors, is_taken)) name += "'";
    names.push_back({{"output", s.name}, {"tensor", name}});
    tensors.emplace_back(name, Tensor::of<double>({static_cast<int64_t>(s.statistics.size())},
                                                  std::span(s.statistics)));
  }
  return names;
}

/// Moves the output statistics from the tensors of a file to `state`. `names`: result of
/// add_statistics().
void take_statistics(TensorFile& file, const Json& names, TrainingState& state) {
  for (const Json& entry : names) {
    const std::string tensor = entry.at("tensor");
    const auto found =
        std::ranges::find(file.tensors, tensor, &std::pair<std::string, Tensor>::first);
    if (found == file.tensors.end()) throw UserError("its manifest names a tensor that is absent");
    const std::span<const double> values = std::as_const(found->second).as<double>();
    state.output_statistics.push_back({entry.at("output"), {values.begin(), values.end()}});
    file.tensors.erase(found);
  }
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
  checkpoint.snapshot.model_hash = program.at("model_hash");
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
    if (file == kTraining) take_statistics(read, manifest.at("statistics"), checkpoint.state);
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
  const Json statistics = add_statistics(training, state.output_statistics);
  write_safetensors(path + "/" + kTraining, training);
  const Json manifest = {{"version", kVersion},
                         {"program",
                          {{"name", snapshot.program},
                           {"hash", snapshot.program_hash},
                           {"model_hash", snapshot.model_hash}}},
                         {"options", snapshot.options},
                         {"decisions", snapshot.tuning_record},
                         {"state", json_of(state)},
                         {"statistics", statistics},
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

std::string serialize_training_state(const TrainingState& state) {
  Json json = json_of(state);
  json["statistics"] = Json::array();
  for (const TrainingState::OutputStatistics& s : state.output_statistics) {
    Json numbers = Json::array();
    for (const double x : s.statistics) numbers.push_back(ir::float_text(x));
    json["statistics"].push_back({{"output", s.name}, {"values", std::move(numbers)}});
  }
  return json.dump();
}

TrainingState parse_training_state(const std::string& text) {
  const Json json = Json::parse(text);
  TrainingState state = state_of(json);
  for (const Json& s : json.at("statistics")) {
    std::vector<double> values;
    for (const Json& x : s.at("values")) values.push_back(float_in(x));
    state.output_statistics.push_back({s.at("output"), std::move(values)});
  }
  return state;
}

}  // namespace fluid
