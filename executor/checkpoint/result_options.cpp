#include "executor/checkpoint/result_options.h"

#include <fmt/format.h>
#include <xxhash.h>

#include "executor/cpu/kernel_tuner.h"
#include "executor/gpu_libraries/gpu_workspace.h"
#include "executor/options/changes.h"
#include "executor/options/precision.h"
#include "frontend/parameter_groups.h"
#include "ir/print.h"
#include "ops/optim/recipes.h"
#include "ops/optim/schedule.h"
#include "ops/source/training_settings.h"
#include "ops/source_kind.h"

namespace fluid {
namespace {

using Texts = std::map<std::string, std::string>;

std::string on_or_off(bool value) { return value ? "on" : "off"; }

void add_place_options(const ExecutorOptions& options, Place place, int threads, Texts& all) {
  if (place.kind == Place::Kind::cpu) {
    all["place"] = "cpu";
    all["threads"] = std::to_string(threads);
    all["tuning"] = on_or_off(options.cpu.tune || has_kernel_times(options.tuning_record));
    return;
  }
  const GpuLibraryOptions libraries{options.gpu.workspace, options.gpu.tf32};
  all["place"] = "cuda";
  all["tuning"] = on_or_off(options.gpu.tune && !options.cache_dir.empty());
  all["workspace"] = std::to_string(libraries.max_workspace()) + " bytes";
}

/// Describes the training settings of the variables: the number of frozen variables, the number of
/// other variables with non-default settings, and a hash of all settings. Returns "" if all
/// variables have the default settings.
std::string training_settings_text(const ir::Program& recorded) {
  int64_t frozen = 0, scaled = 0;
  std::string all;
  for (const auto& op : recorded.main().ops) {
    if (!is_variable(*op)) continue;
    Attrs settings;
    for (const char* name : kTrainingSettings) {
      if (const Attr* value = op->attrs.find(name)) settings.set(name, *value);
    }
    if (settings.empty()) continue;
    ++(is_frozen_variable(*op) ? frozen : scaled);
    all += op->symbol;
    for (const auto& [name, value] : settings) all += " " + name + "=" + ir::print(value);
  }
  if (all.empty()) return "";
  return fmt::format("{} frozen, {} with own rate or decay [{:08x}]", frozen, scaled,
                     static_cast<uint32_t>(XXH3_64bits(all.data(), all.size())));
}

}  // namespace

Texts result_options(const ir::Program& recorded, const ExecutorOptions& options, Place place,
                     int threads) {
  const std::optional<DType> reduced = options.distributed.buckets.dtype;
  Texts all = {{"seed", std::to_string(options.seed)},
               {"dtype", std::string(name_of(options.precision.dtype.value_or(DType::f32)))},
               {"amp", amp_text(options.precision.amp)},
               {"micro-batches", std::to_string(options.micro_batches)},
               {"libraries", on_or_off(options.debug.libraries)},
               {"reduce-dtype", reduced ? std::string(name_of(*reduced)) : "recorded"}};
  if (options.distributed.sync_bn) all["sync-bn"] = "on";
  if (options.gpu.tf32) all["tf32"] = "on";
  add_place_options(options, place, threads, all);
  const std::vector<ir::Op*> recipes = recipes_of(recorded.main());
  if (recipes.empty()) return all;
  for (const ir::Op* train : recipes) {
    for (const auto& [name, value] : train->attrs) {
      all[recipe_state(recipe_name(*train), name)] = ir::print(value);
    }
  }
  const std::string settings = training_settings_text(recorded);
  if (!settings.empty()) all["parameter settings"] = settings;
  return all;
}

bool monitors_other_metric(const Texts& before, const Texts& now, const std::string& recipe) {
  const auto differs = [&](const char* setting, const std::string& fallback) {
    const std::string name = recipe_state(recipe, std::string(kSchedulePrefix) + setting);
    const auto text = [&](const Texts& texts) {
      const auto found = texts.find(name);
      return found == texts.end() ? ir::print(Attr(fallback)) : found->second;
    };
    return text(before) != text(now);
  };
  return differs("metric", "") || differs("mode", "min");
}

std::string changed_result_options(Texts before, Texts now) {
  before.emplace("place", "cpu");
  const bool moved = before.at("place") != now.at("place");
  for (const char* name : {"threads", "tuning", "workspace"}) {
    if (!moved && before.contains(name) && now.contains(name)) continue;
    before.erase(name);
    now.erase(name);
  }
  return describe_changes(before, now);
}

}  // namespace fluid
