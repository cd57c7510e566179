#include "executor/device/variables.h"

#include <algorithm>
#include <cstring>

#include "ir/error.h"
#include "ops/random/initializer.h"
#include "ops/source_kind.h"
#include "passes/half_weights.h"
#include "passes/memory_plan.h"
#include "passes/rewrite.h"

namespace fluid {

std::string_view name_of(VariableKind kind) {
  switch (kind) {
    case VariableKind::recorded:
      return "recorded";
    case VariableKind::optimizer:
      return "optimizer";
    case VariableKind::control:
      return "control";
    case VariableKind::cache:
      return "cache";
    case VariableKind::scratch:
      return "scratch";
  }
  return "";
}

std::byte* TensorShard::shard_address(Tensor& tensor, int owner) const {
  return static_cast<std::byte*>(tensor.data()) +
         shard_begins[static_cast<size_t>(owner)] * size_of(tensor.dtype());
}

Tensor TensorShard::local_shard(const Tensor& tensor) const {
  Tensor own(tensor.dtype(), {elements(rank)});
  const int64_t begin = shard_begins[static_cast<size_t>(rank)] * size_of(tensor.dtype());
  std::memcpy(own.data(), static_cast<const std::byte*>(tensor.data()) + begin,
              static_cast<size_t>(own.bytes()));
  return own;
}

void Variables::add(const std::string& name, const Type& type, std::optional<VariableKind> kind,
                    std::optional<TensorShard> shard) {
  if (const auto at = position_.find(name); at != position_.end()) {
    Variable* known = &variables_[at->second];
    check(known->type == type, [&] {
      return "variable '" + name + "' is " + known->type.str() + " and " + type.str() +
             " in two programs of a session";
    });
    if (kind) known->kind = *kind;
    if (shard) known->shard = std::move(shard);
    return;
  }
  position_[name] = variables_.size();
  variables_.push_back(
      {name, type, kind.value_or(VariableKind::control), bytes_, std::move(shard)});
  bytes_ += align_up(type.bytes_at(1));
}

const Variable* Variables::find(std::string_view name) const {
  const auto at = position_.find(name);
  return at == position_.end() ? nullptr : &variables_[at->second];
}

const Variable& Variables::at(std::string_view name) const {
  if (const Variable* v = find(name)) return *v;
  std::vector<std::string> names;
  for (const Variable& v : variables_) names.push_back(v.name);
  throw UserError("no variable '" + std::string(name) + "'" + did_you_mean(name, names));
}

std::vector<Variable> recorded_variables(const ir::Program& recorded, const Options& options) {
  std::vector<Variable> variables;
  for (const VariableDecl& v : declared_variables(recorded.main())) {
    if (v.attrs.get_or(kCacheAttribute, false)) continue;
    Type type = v.type;
    if (options.dtype && is_float(type.dtype)) type.dtype = *options.dtype;
    variables.push_back({.name = v.name, .type = type, .kind = VariableKind::recorded});
  }
  return variables;
}

void add_variables(const ir::Program& final_program, const ir::Program& recorded, int64_t rank,
                   Variables& to) {
  const auto variables = variables_by_name(recorded.main());
  const auto kind_of_recorded = [&](const std::string& name) -> std::optional<VariableKind> {
    const auto variable = variables.find(name);
    if (name == kRandomState || variable == variables.end()) return std::nullopt;
    return is_cache(*variable->second) ? VariableKind::cache : VariableKind::recorded;
  };
  const auto kind_of_added = [](const ir::Op& source) {
    if (source.attrs.get_or(kScratchAttribute, false)) return VariableKind::scratch;
    return source.param.empty() ? VariableKind::control : VariableKind::optimizer;
  };
  const auto part_of = [&](const ir::Op& source) -> std::optional<TensorShard> {
    if (!source.attrs.has(kFullShape)) return std::nullopt;
    return TensorShard{source.attrs.get<std::vector<int64_t>>(kFullShape),
                       source.attrs.get<std::vector<int64_t>>(kShardBounds),
                       static_cast<int>(rank)};
  };
  for (const auto& op : final_program.main().ops) {
    const std::optional<VariableKind> kind = kind_of_recorded(op->symbol);
    if (is_variable(*op)) {
      to.add(op->symbol, op->results[0].type, kind ? *kind : kind_of_added(*op), part_of(*op));
    }
    if (is_store(*op) && !is_carry(*op)) to.add(op->symbol, op->operands.at(0).type(), kind);
  }
}

int64_t stored_bytes(const ir::Program& program) {
  int64_t bytes = 0;
  for (const auto& op : program.main().ops) {
    if (is_store(*op)) bytes += op->operands.at(0).type().bytes_at(1);
  }
  return bytes;
}

StateRange add_weight_variables(const ir::Program& final_program, const ir::Program& recorded,
                                int64_t rank, Variables& to) {
  const bool is_mapped = stored_bytes(final_program) >= kMinMappedWeights;
  if (is_mapped) to.align_next();
  StateRange range{.offset = to.bytes()};
  add_variables(final_program, recorded, rank, to);
  if (!is_mapped) return {};
  to.align_next();
  range.bytes = to.bytes() - range.offset;
  return range;
}

bool is_initialised(const Variable& variable) {
  return variable.name != kRandomState && variable.kind != VariableKind::scratch &&
         !parameter_of_half_weight(variable.name);
}

std::set<std::string> StartupPlan::computed_names() const {
  std::set<std::string> names;
  for (const VariableDecl& v : computed) names.insert(v.name);
  return names;
}

StartupPlan plan_startup_values(const std::set<std::string>& wanted, const Variables& table,
                                const std::vector<const ir::Program*>& programs) {
  StartupPlan startup;
  std::set<std::string_view> found;
  for (const ir::Program* program : programs) {
    for (VariableDecl& v : declared_variables(program->main())) {
      const auto name = wanted.find(v.name);
      if (name == wanted.end() || !found.insert(*name).second) continue;
      if (is_zero_initialized(v.attrs, v.loc)) {
        startup.zeros.insert(v.name);
      } else {
        v.type = table.at(v.name).type;
        startup.computed.push_back(std::move(v));
      }
    }
  }
  check(found.size() == wanted.size(), "a variable to fill is declared by no program");
  return startup;
}

}  // namespace fluid
