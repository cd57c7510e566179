#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/tensor.h"
#include "passes/options.h"
#include "passes/startup.h"

namespace fluid {

/// The owner of a variable. Checkpoints and parameter files treat each kind differently.
enum class VariableKind : uint8_t {
  recorded,   ///< declared by the user: a parameter, or a state such as a running mean
  optimizer,  ///< a parameter's moment; training cannot resume without it
  control,    ///< a counter or the loss scale; reset when absent from a checkpoint
  scratch,    ///< holds no value between runs: a `state` op with the attribute kScratch
};
std::string_view name_of(VariableKind kind);

/// The shard of a tensor that one rank owns (ZeRO).
struct TensorShard {
  std::vector<int64_t> whole;  ///< shape of the whole tensor
  std::vector<int64_t> cuts;   ///< first element of each rank's shard, then the number of elements
  int rank = 0;
  /// Elements in the shard of rank `of`.
  int64_t elements(int of) const { return cuts[size_t(of) + 1] - cuts[size_t(of)]; }
  /// Address of rank `of`'s shard in the whole tensor.
  std::byte* in(Tensor& tensor, int of) const;
  /// A copy of this rank's shard of the whole tensor.
  Tensor local_shard(const Tensor& tensor) const;
};

/// A named variable of a session: a parameter, an optimizer state, or a counter.
struct Variable {
  std::string name;
  Type type;
  VariableKind kind = VariableKind::control;
  int64_t offset = 0;  ///< bytes from the start of the state region, a multiple of 64
  /// Set for a shard; `type` is then a vector of the shard's elements.
  std::optional<TensorShard> part = {};
  bool saved() const { return kind == VariableKind::recorded; }
};

/// The variables of a session, in the order in which they were added. All executables of the
/// session share one table, so a variable has one address.
class Variables {
 public:
  /// Adds a variable, or checks that an existing one has the same type. A given kind or part
  /// replaces the existing one. The default kind is `control`.
  void add(const std::string& name, const Type& type, std::optional<VariableKind> kind,
           std::optional<TensorShard> part = {});
  const Variable* find(std::string_view name) const;  ///< null when absent
  /// Throws UserError with a near miss when absent.
  const Variable& named(std::string_view name) const;
  const std::vector<Variable>& all() const { return variables_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::vector<Variable> variables_;
  std::map<std::string, size_t, std::less<>> position_;  ///< index by name
  int64_t bytes_ = 0;
};

/// The variables that the recorded program declares, in order, with their types under `options`.
/// Offsets are not set.
std::vector<Variable> recorded_variables(const ir::Program& recorded, const Options& options);

/// Adds the variables that the main graph of a compiled program reads or writes. Variables declared
/// by `recorded` get the kind `recorded`. `rank`: of this process.
void add_variables(const ir::Program& final_program, const ir::Program& recorded, int64_t rank,
                   Variables& to);

/// Whether the variable has an initial value of its own. False for the random state, half-precision
/// weights and scratch.
bool is_initialised(const Variable& variable);

/// How variables get their initial values.
struct Startup {
  std::set<std::string> zeros;      ///< initially zero: memory is zeroed already
  std::vector<NewVariable> filled;  ///< filled by the startup program
  std::set<std::string> names_of_filled() const;
};
/// Determines the initial values of the variables `wanted`. The first of `programs` that declares a
/// variable determines its initialiser; `table` has its type.
Startup startup_of(const std::set<std::string>& wanted, const Variables& table,
                   const std::vector<const ir::Program*>& programs);

}  // namespace fluid
