#include "frontend/lora.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "frontend/files/safetensors.h"
#include "frontend/init.h"
#include "frontend/linear_weights.h"
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

void check_options(const Lora& options, const Loc& loc) {
  if (options.rank > 0 && options.alpha > 0 && std::isfinite(options.alpha)) return;
  throw UserError(loc, "lora: rank " + std::to_string(options.rank) + " and alpha " +
                           ir::float_text(options.alpha) + " must be positive");
}

/// The LoRA adapters a and b of a weight.
struct AdapterValues {
  Value a, b;
};

/// Moves the ops that `record` appends next to `op`: before it if `offset` is 0, after it if 1.
template <class F>
void record_beside(ir::Op& op, size_t offset, F record) {
  ir::Graph& graph = *op.graph();
  const size_t first = graph.ops.size();
  const ir::ScopedRecording as(graph, {op.role, op.loc, op.scope, op.param});
  record();
  const auto at = std::ranges::find_if(graph.ops, [&](const auto& o) { return o.get() == &op; });
  graph.move_tail(first, static_cast<size_t>(at - graph.ops.begin()) + offset);
}

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

/// Adds scale * (x a) b to the result x w of the matmul `product`, or scale * (x b^T) a^T to x w^T.
void add_low_rank_product(ir::Op& product, const AdapterValues& ab, double scale) {
  record_beside(product, 1, [&] {
    const Value x = product.operands.at(0), y = product.result();
    const bool transposed = product.attrs.get_or("transpose_b", false);
    const MatmulAttrs first{.transpose_a = product.attrs.get_or("transpose_a", false),
                            .transpose_b = transposed};
    const Loc& loc = product.loc;
    const Value inner = matmul(x, transposed ? ab.b : ab.a, first, loc);
    const Value change = matmul(inner, transposed ? ab.a : ab.b, {.transpose_b = transposed}, loc);
    const Value sum = add(y, scale == 1 ? change : change * scale, loc);
    product.graph()->replace_all_uses(y, sum);
    sum.op()->operands[0] = y;
  });
}

/// If a recipe lists the parameters to train, adds the adapters of `weight` to a list with it.
void add_to_recipes(ir::Graph& graph, const std::string& weight) {
  for (ir::Op* train : recipes_of(graph)) {
    auto names = train->attrs.get_or("trains", std::vector<std::string>());
    const auto at = std::ranges::find(names, weight);
    if (at == names.end()) continue;
    names.insert(at + 1, {weight + kLoraSuffixes[0], weight + kLoraSuffixes[1]});
    train->attrs.set("trains", names);
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

int64_t largest_rank(const LinearWeight& weight) {
  const Shape& shape = weight.value.shape();
  return std::min(shape[0].size, shape[1].size);
}

/// Throws UserError for a rank above min(in, out) of all `weights`. Accepts the default rank for
/// small weights, too.
void check_rank(const std::vector<LinearWeight>& weights, const Lora& options, const Loc& loc) {
  const LinearWeight& largest = *std::ranges::max_element(weights, {}, largest_rank);
  const int64_t most = largest_rank(largest);
  if (options.rank <= std::max(most, Lora().rank)) return;
  throw UserError(loc, "lora: rank " + std::to_string(options.rank) +
                           " is above min(in, out) = " + std::to_string(most) + " of '" +
                           largest.name() + "' " + largest.value.type().str());
}

/// Adds adapters to a weight. The first adapters of a program freeze its other variables.
void add_adapters(ir::Graph& graph, const LinearWeight& weight, const Lora& options) {
  const bool are_first = !has_adapters(graph);
  AdapterValues ab;
  record_beside(*weight.products.front(), 0, [&] {
    ab = record_adapters(graph, weight.value, options, weight.products.front()->loc);
  });
  const double scale = options.alpha / static_cast<double>(options.rank);
  for (ir::Op* product : weight.products) add_low_rank_product(*product, ab, scale);
  add_to_recipes(graph, weight.name());
  if (are_first) freeze_base(graph);
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

/// Returns the items of the metadata entry `name`, which semicolons separate. A backslash escapes a
/// semicolon or a backslash of an item.
std::vector<std::string> items_of(const Metadata& metadata, std::string_view name) {
  const auto found = metadata.find(std::string(name));
  if (found == metadata.end() || found->second.empty()) return {};
  const std::string& text = found->second;
  std::vector<std::string> items(1);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ';') {
      items.emplace_back();
    } else {
      items.back() += text[i] == '\\' && i + 1 < text.size() ? text[++i] : text[i];
    }
  }
  return items;
}

/// Adds the entry `name` to `metadata`, unless there are no items.
void add_items(Metadata& metadata, std::string_view name, const std::vector<std::string>& items) {
  if (items.empty()) return;
  std::string text;
  for (const std::string& item : items) {
    if (&item != &items.front()) text += ';';
    for (const char c : item) text += c == ';' || c == '\\' ? std::string{'\\', c} : std::string{c};
  }
  metadata.emplace(name, text);
}

std::string settings_text(const Lora& options) {
  return "rank=" + std::to_string(options.rank) + ",alpha=" + ir::float_text(options.alpha);
}

/// The weight in "fc0.w:rank=8,alpha=8"; nullopt: the text has another form.
std::optional<std::string> adapted_weight(const std::string& item) {
  const size_t colon = item.rfind(':');
  return colon == std::string::npos ? std::nullopt : std::optional(item.substr(0, colon));
}

std::vector<std::string> names_of(const std::vector<LinearWeight>& weights) {
  std::vector<std::string> names;
  for (const LinearWeight& weight : weights) names.push_back(weight.name());
  return names;
}

/// Adds the adapters that the item `text` of kLoraMetadata describes, unless the program has them.
void add_adapters_of_file(Program& program, const std::vector<LinearWeight>& weights,
                          const std::string& text) {
  const std::optional<std::string> name = adapted_weight(text);
  if (!name) throw UserError("'" + text + "' describes no adapters");
  const Lora options = parse_lora(text.substr(name->size() + 1));
  const auto weight = std::ranges::find(weights, *name, &LinearWeight::name);
  if (weight == weights.end()) {
    throw UserError("holds adapters of '" + *name +
                    "', which is no weight of a linear layer of the program; there are " +
                    nearest_names(*name, names_of(weights), kMaxListedWeights));
  }
  const std::vector<LoraAdapter> known = lora_adapters(program.ir());
  const auto adapter = std::ranges::find(known, *name, &LoraAdapter::weight);
  if (adapter == known.end()) {
    if (!weight->other_reader.empty()) {
      throw UserError("adapters cannot replace " + weight->text());
    }
    return add_adapters(program.ir().main(), *weight, options);
  }
  if (adapter->rank == options.rank && adapter->alpha() == options.alpha) return;
  throw UserError("the adapters of '" + *name + "' have " + settings_text(options) +
                  ", those of the program " + settings_text({adapter->rank, adapter->alpha()}));
}

}  // namespace

bool is_lora_adapter(const ir::Op& param) { return param.attrs.has(kLoraOf); }

std::vector<std::string> lora(Program& program, const std::string& pattern, const Lora& options,
                              const Loc& loc) {
  check_options(options, loc);
  ir::Graph& graph = program.ir().main();
  const NamePattern names(pattern);
  const std::vector<LinearWeight> weights = linear_weights(graph);
  std::vector<LinearWeight> selected;
  std::vector<std::string> left_out;
  for (const LinearWeight& weight : weights) {
    if (!names.selects(weight.name())) continue;
    if (weight.other_reader.empty()) {
      selected.push_back(weight);
    } else {
      left_out.push_back(weight.text());
    }
  }
  if (!left_out.empty() && (selected.empty() || !names.has_wildcard())) {
    throw UserError(loc, "lora: adapters cannot replace " + left_out.front());
  }
  if (selected.empty()) {
    throw UserError(loc, "lora: pattern '" + pattern + "' matches no weight of a linear layer" +
                             pattern_suggestion(pattern, names_of(weights)));
  }
  for (const LoraAdapter& adapter : lora_adapters(program.ir())) {
    if (std::ranges::find(selected, adapter.weight, &LinearWeight::name) == selected.end())
      continue;
    throw UserError(loc, "lora: '" + adapter.weight + "' has adapters already");
  }
  check_rank(selected, options, loc);
  for (const LinearWeight& weight : selected) add_adapters(graph, weight, options);
  return left_out;
}

void lora_from_file(Program& program, const std::string& path, const Loc& loc) {
  const Metadata metadata = read_safetensors(path).metadata;
  const std::vector<std::string> adapters = items_of(metadata, kLoraMetadata);
  if (adapters.empty()) throw UserError(loc, path + ": the file holds no adapters");
  ir::Graph& graph = program.ir().main();
  const std::vector<LinearWeight> weights = linear_weights(graph);
  for (const std::string& adapter : adapters) {
    try {
      add_adapters_of_file(program, weights, adapter);
    } catch (const UserError& e) {
      throw UserError(loc, path + ": " + e.what());
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

void require_exact_merge(const ir::Program& program) {
  const std::vector<LinearWeight> weights = linear_weights(program.main());
  for (const LoraAdapter& adapter : lora_adapters(program)) {
    const auto weight = std::ranges::find(weights, adapter.weight, &LinearWeight::name);
    if (weight == weights.end()) continue;  // its products give nothing that a step computes
    if (!weight->other_reader.empty()) {
      throw UserError("merge: adapters cannot replace " + weight->text());
    }
    const auto low_rank_products =
        std::ranges::count_if(program.main().ops, [&](const std::unique_ptr<ir::Op>& op) {
          return op->name == "matmul" && op->operands[1].op()->symbol == adapter.b;
        });
    if (low_rank_products == static_cast<int64_t>(weight->products.size())) continue;
    throw UserError("merge: the adapters of '" + adapter.weight + "' change " +
                    std::to_string(low_rank_products) + " of its " +
                    std::to_string(weight->products.size()) +
                    " products; call lora() after all layers are recorded");
  }
}

bool is_saved_with_lora(const ir::Op& variable) {
  return is_lora_adapter(variable) || !is_frozen_variable(variable) ||
         variable.attrs.get_or(kSavedWithLora, false);
}

Metadata lora_metadata(const ir::Program& program, FunctionRef<bool(const ir::Op&)> is_saved) {
  std::vector<std::string> adapters, trained;
  for (const LoraAdapter& adapter : lora_adapters(program)) {
    adapters.push_back(adapter.weight + ":" + settings_text({adapter.rank, adapter.alpha()}));
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

std::vector<std::string> adapters_in_lora_metadata(const Metadata& metadata) {
  return items_of(metadata, kLoraMetadata);
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
