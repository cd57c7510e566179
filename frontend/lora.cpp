#include "frontend/lora.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <sstream>

#include "frontend/files/safetensors.h"
#include "frontend/init.h"
#include "frontend/name_pattern.h"
#include "frontend/parameter_groups.h"
#include "frontend/penalties.h"
#include "ir/error.h"
#include "ir/near.h"
#include "ir/number.h"
#include "ir/text.h"
#include "ops/lora_attributes.h"
#include "ops/operators.h"
#include "ops/optim/recipes.h"
#include "ops/record.h"
#include "ops/source/training_settings.h"
#include "ops/source_kind.h"

namespace fluid {
namespace {

constexpr size_t kMaxListedWeights = 8;  ///< maximum number of weights in an error message

/// Returns whether `op` is the matmul of a linear layer: its second operand is a parameter
/// [in, out] that is not an adapter.
bool is_weight_product(const ir::Op& op) {
  if (op.name != "matmul" || op.attrs.get_or("transpose_a", false) ||
      op.attrs.get_or("transpose_b", false)) {
    return false;
  }
  const Value& w = op.operands.at(1);
  return source_kind(*w.op()) == SourceKind::parameter && w.shape().rank() == 2 &&
         !is_lora_adapter(*w.op());
}

void check_options(const Lora& options, const Loc& loc) {
  if (options.rank > 0 && options.alpha > 0 && std::isfinite(options.alpha)) return;
  throw UserError(loc, "lora: rank " + std::to_string(options.rank) + " and alpha " +
                           ir::float_text(options.alpha) + " must be positive");
}

/// The LoRA adapters a and b of a weight.
struct AdapterValues {
  Value a, b;
};

AdapterValues record_adapters(ir::Graph& graph, Value w, const Lora& options, const Loc& loc) {
  const std::string& name = w.op()->symbol;
  const double scale = options.alpha / static_cast<double>(options.rank);
  Attrs a = Init::kaiming_uniform(std::sqrt(5.0)).attrs(), b = Init::zeros().attrs();
  a.set(kLoraOf, name);
  b.set(kLoraOf, name);
  b.set(kLoraScale, scale);
  const Type type_a{w.dtype(), {w.shape()[0], options.rank}, {}};
  const Type type_b{w.dtype(), {options.rank, w.shape()[1]}, {}};
  return {record_source(graph, "param", name + kLoraSuffixes[0], type_a, a, loc),
          record_source(graph, "param", name + kLoraSuffixes[1], type_b, b, loc)};
}

/// Adds scale * (x a) b to the result x w of the matmul `product`, right after this op.
void add_low_rank_product(ir::Op& product, std::map<std::string, AdapterValues>& adapters,
                          const Lora& options) {
  ir::Graph& graph = *product.graph();
  const Loc loc = product.loc;
  const size_t first = graph.ops.size();
  const ir::ScopedRecording as(graph, {product.role, loc, product.scope, product.param});
  const Value x = product.operands.at(0), w = product.operands.at(1), y = product.result();
  const auto known = adapters.find(w.op()->symbol);
  const AdapterValues ab = known == adapters.end()
                               ? adapters[w.op()->symbol] = record_adapters(graph, w, options, loc)
                               : known->second;
  const double scale = options.alpha / static_cast<double>(options.rank);
  const Value change = matmul(matmul(x, ab.a, {}, loc), ab.b, {}, loc);
  const Value sum = add(y, scale == 1 ? change : change * scale, loc);
  graph.replace_all_uses(y, sum);
  sum.op()->operands[0] = y;
  const auto at =
      std::ranges::find_if(graph.ops, [&](const auto& op) { return op.get() == &product; });
  graph.move_tail(first, static_cast<size_t>(at - graph.ops.begin()) + 1);
}

/// If a recipe lists the parameters to train, adds the adapters of each listed weight to the list.
void add_to_recipes(ir::Graph& graph, const std::map<std::string, AdapterValues>& adapters) {
  for (ir::Op* train : recipes_of(graph)) {
    auto names = train->attrs.get_or("trains", std::vector<std::string>());
    const std::set<std::string> weights(names.begin(), names.end());
    for (const auto& [weight, ab] : adapters) {
      if (!weights.contains(weight)) continue;
      names.push_back(ab.a.op()->symbol);
      names.push_back(ab.b.op()->symbol);
    }
    if (!weights.empty()) train->attrs.set("trains", names);
  }
}

bool has_adapters(const ir::Graph& graph) {
  return std::ranges::any_of(graph.ops, [](const auto& op) { return is_lora_adapter(*op); });
}

void freeze_base(ir::Graph& graph) {
  for (const auto& op : graph.ops) {
    if (source_kind(*op) == SourceKind::parameter && !is_lora_adapter(*op)) {
      op->attrs.set("trainable", false);
    }
  }
  freeze_running_statistics(graph);
  for (ir::Op* train : recipes_of(graph)) set_penalties(*train);
}

int64_t largest_rank(Value w) { return std::min(w.shape()[0].size, w.shape()[1].size); }

/// Throws UserError for a rank above min(in, out) of the weights of all `products`. Accepts the
/// default rank for small weights, too.
void check_rank(const std::vector<ir::Op*>& products, const Lora& options, const Loc& loc) {
  const auto rank_of = [](const ir::Op* product) { return largest_rank(product->operands[1]); };
  const auto largest = std::ranges::max_element(products, {}, rank_of);
  if (largest == products.end()) return;
  const int64_t most = rank_of(*largest);
  if (options.rank <= std::max(most, Lora().rank)) return;
  const Value w = (*largest)->operands[1];
  throw UserError(loc, "lora: rank " + std::to_string(options.rank) + " is above min(in, out) = " +
                           std::to_string(most) + " of '" + w.op()->symbol + "' " + w.type().str());
}

/// Adds adapters to the weights for whose names `selected` returns true. The first adapters of a
/// program freeze its other variables. Returns whether there are any. With `checks_rank`, throws
/// UserError for a rank above that of all weights.
template <class F>
bool add_adapters(ir::Graph& graph, const Lora& options, bool checks_rank, const Loc& loc,
                  F selected) {
  check_options(options, loc);
  std::vector<ir::Op*> products;
  for (const auto& op : graph.ops) {
    if (is_weight_product(*op) && selected(op->operands[1].op()->symbol)) {
      products.push_back(op.get());
    }
  }
  for (const ir::Op* product : products) {
    const std::string& name = product->operands[1].op()->symbol;
    if (graph.find("param", name + kLoraSuffixes[0]) == nullptr) continue;
    throw UserError(loc, "lora: '" + name + "' has adapters already");
  }
  if (checks_rank) check_rank(products, options, loc);
  const bool are_first = !has_adapters(graph);
  std::map<std::string, AdapterValues> adapters;
  for (ir::Op* product : products) add_low_rank_product(*product, adapters, options);
  add_to_recipes(graph, adapters);
  if (!products.empty() && are_first) freeze_base(graph);
  return !products.empty();
}

/// Unfreezes the variables `names`, which a file of adapters holds beside them, and marks them to
/// be saved with adapters.
void train_with_adapters(ir::Graph& graph, const std::vector<std::string>& names) {
  for (const auto& op : graph.ops) {
    if (!is_variable(*op) || std::ranges::find(names, op->symbol) == names.end()) continue;
    op->attrs.erase("trainable");
    op->attrs.erase(kFrozenAttribute);
    op->attrs.set(kSavedWithLora, true);
  }
  for (ir::Op* train : recipes_of(graph)) set_penalties(*train);
}

using Metadata = std::map<std::string, std::string>;

/// Returns the items of the metadata entry `name`, which semicolons separate.
std::vector<std::string> items_of(const Metadata& metadata, std::string_view name) {
  const auto found = metadata.find(std::string(name));
  std::istringstream in(found == metadata.end() ? "" : found->second);
  std::vector<std::string> items;
  for (std::string item; std::getline(in, item, ';');) items.push_back(item);
  return items;
}

/// Adds the entry `name` to `metadata`, unless there are no items.
void add_items(Metadata& metadata, std::string_view name, const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ";") + item;
  if (!items.empty()) metadata.emplace(name, text);
}

/// The weight in "fc0.w:rank=8,alpha=8"; nullopt: the text has another form.
std::optional<std::string> adapted_weight(const std::string& item) {
  const size_t colon = item.rfind(':');
  return colon == std::string::npos ? std::nullopt : std::optional(item.substr(0, colon));
}

std::vector<std::string> linear_weight_names(const ir::Graph& graph) {
  std::vector<std::string> names;
  for (const auto& op : graph.ops) {
    if (is_weight_product(*op)) names.push_back(op->operands[1].op()->symbol);
  }
  return names;
}

}  // namespace

bool is_lora_adapter(const ir::Op& param) { return param.attrs.has(kLoraOf); }

void lora(Program& program, const std::string& pattern, const Lora& options, const Loc& loc) {
  ir::Graph& graph = program.ir().main();
  const NamePattern names(pattern);
  const auto selected = [&](const std::string& n) { return names.selects(n); };
  if (add_adapters(graph, options, /*checks_rank=*/true, loc, selected)) return;
  throw UserError(loc, "lora: pattern '" + pattern + "' matches no weight of a linear layer" +
                           pattern_suggestion(pattern, linear_weight_names(graph)));
}

void lora_from_file(Program& program, const std::string& path, const Loc& loc) {
  const Metadata metadata = read_safetensors(path).metadata;
  const std::vector<std::string> adapters = items_of(metadata, kLoraMetadata);
  if (adapters.empty()) throw UserError(loc, path + ": the file holds no adapters");
  ir::Graph& graph = program.ir().main();
  for (const std::string& adapter : adapters) {
    const std::optional<std::string> weight = adapted_weight(adapter);
    if (!weight) throw UserError(loc, path + ": '" + adapter + "' describes no adapters");
    const Lora options = parse_lora(adapter.substr(weight->size() + 1));
    const auto selected = [&](const std::string& n) { return n == *weight; };
    if (!add_adapters(graph, options, /*checks_rank=*/false, loc, selected)) {
      throw UserError(loc,
                      path + ": holds adapters of '" + *weight +
                          "', which is no weight of a linear layer of the program; there are " +
                          nearest_names(*weight, linear_weight_names(graph), kMaxListedWeights));
    }
  }
  train_with_adapters(graph, items_of(metadata, kTrainedWithLoraMetadata));
}

std::vector<LoraAdapter> lora_adapters(const ir::Program& program) {
  std::vector<LoraAdapter> adapters;
  for (const auto& op : program.main().ops) {
    if (!op->attrs.has(kLoraScale)) continue;
    const auto& weight = op->attrs.get<std::string>(kLoraOf);
    adapters.push_back({.weight = weight,
                        .a = weight + kLoraSuffixes[0],
                        .b = op->symbol,
                        .rank = op->results.at(0).type.shape[0].size,
                        .scale = op->attrs.get<double>(kLoraScale)});
  }
  return adapters;
}

bool is_saved_with_lora(const ir::Op& variable) {
  return is_lora_adapter(variable) || !is_frozen_variable(variable) ||
         variable.attrs.get_or(kSavedWithLora, false);
}

Metadata lora_metadata(const ir::Program& program, FunctionRef<bool(const ir::Op&)> is_saved) {
  std::vector<std::string> adapters, trained;
  for (const LoraAdapter& adapter : lora_adapters(program)) {
    adapters.push_back(adapter.weight + ":rank=" + std::to_string(adapter.rank) + ",alpha=" +
                       ir::float_text(adapter.scale * static_cast<double>(adapter.rank)));
  }
  if (adapters.empty()) return {};
  for (const auto& op : program.main().ops) {
    const bool is_listed =
        is_variable(*op) && is_saved(*op) && !is_lora_adapter(*op) && op->symbol != kRandomState;
    if (is_listed) trained.push_back(op->symbol);
  }
  Metadata metadata;
  add_items(metadata, kLoraMetadata, adapters);
  add_items(metadata, kTrainedWithLoraMetadata, trained);
  return metadata;
}

std::vector<std::string> variables_in_lora_metadata(const Metadata& metadata) {
  std::vector<std::string> names = items_of(metadata, kTrainedWithLoraMetadata);
  for (const std::string& adapter : items_of(metadata, kLoraMetadata)) {
    const std::string weight = adapted_weight(adapter).value_or(adapter);
    for (const char* suffix : kLoraSuffixes) names.push_back(weight + suffix);
  }
  return names;
}

Lora parse_lora(const std::string& settings) {
  Lora lora;
  std::set<std::string> names;
  for (size_t begin = 0; begin <= settings.size();) {
    const size_t end = std::min(settings.find(',', begin), settings.size());
    const std::string setting = settings.substr(begin, end - begin);
    const std::string name = setting.substr(0, setting.find('='));
    const std::string value = setting.substr(std::min(name.size() + 1, setting.size()));
    const auto rank = parse_number<int64_t>(value);
    const auto alpha = parse_number<double>(value);
    if (!names.insert(name).second) throw UserError("'" + name + "' is given twice");
    if (name == "rank" && rank && *rank > 0) {
      lora.rank = *rank;
    } else if (name == "alpha" && alpha && *alpha > 0 && std::isfinite(*alpha)) {
      lora.alpha = *alpha;
    } else {
      throw UserError("'" + setting + "' is neither rank=N nor alpha=X, of positive numbers");
    }
    begin = end + 1;
  }
  return lora;
}

}  // namespace fluid
