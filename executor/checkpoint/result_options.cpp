#include "executor/checkpoint/result_options.h"

#include "executor/gpu_libraries/gpu_workspace.h"
#include "executor/options/changes.h"
#include "executor/options/precision.h"
#include "ir/print.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

using Texts = std::map<std::string, std::string>;

std::string on_or_off(bool value) { return value ? "on" : "off"; }

void add_place_options(const ExecutorOptions& options, Place place, int threads, Texts& all) {
  if (place.kind == Place::Kind::cpu) {
    all["place"] = "cpu";
    all["threads"] = std::to_string(threads);
    return;
  }
  const GpuLibraries libraries{options.gpu.workspace, options.gpu.tf32};
  all["place"] = "cuda";
  all["tuning"] = on_or_off(options.gpu.tune && !options.cache_dir.empty());
  all["workspace"] = std::to_string(libraries.max_workspace()) + " bytes";
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
  const ir::Op* train = find_directive(recorded.main());
  if (train == nullptr) return all;
  for (const auto& [name, value] : train->attrs) all[name] = ir::print(value);
  return all;
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
