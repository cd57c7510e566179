#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "executor/device/state_file.h"
#include "ir/graph.h"
#include "ir/tensor.h"
#include "passes/options.h"
#include "passes/startup.h"

namespace fluid {

/// Purpose of a variable. Checkpoints and parameter files treat each kind differently.
enum class VariableKind : uint8_t {
  recorded,   ///< declared by the user: a parameter, or a state such as a running mean
  optimizer,  ///< optimizer state, such as Adam's moments; training cannot resume without it
  control,    ///< a counter or the loss scale; keeps its value if a checkpoint lacks it
  cache,      ///< written by predict steps, not saved to files: a `state` op with kCacheAttribute
  scratch,    ///< workspace, not preserved between runs: a `state` op with kScratchAttribute
};
std::string_view name_of(VariableKind kind);

/// Partition of a tensor into one shard per rank (ZeRO), and the rank of this process.
struct TensorShard {
  std::vector<int64_t> full_shape;  ///< shape of the unsharded tensor
  /// Index of the first element of each shard, followed by the total number of elements.
  std::vector<int64_t> shard_begins;
  int rank = 0;
  /// Number of elements in the shard of rank `owner`.
  int64_t elements(int owner) const {
    return shard_begins[size_t(owner) + 1] - shard_begins[size_t(owner)];
  }
  /// Address of the shard of rank `owner` in the unsharded tensor.
  std::byte* shard_address(Tensor& tensor, int owner) const;
  /// Returns a copy of this rank's shard of the unsharded tensor.
  Tensor local_shard(const Tensor& tensor) const;
};

/// A named variable of a session: a parameter, an optimizer state, or a counter.
struct Variable {
  std::string name;
  Type type;
  VariableKind kind = VariableKind::control;
  int64_t offset = 0;  ///< bytes from the start of the state region, a multiple of 64
  /// Set if this rank has only a shard of the variable. `type` is then the type of a vector with
  /// the elements of the shard.
  std::optional<TensorShard> shard = {};
  bool is_recorded() const { return kind == VariableKind::recorded; }
  bool is_in_checkpoints() const {
    return kind != VariableKind::cache && kind != VariableKind::scratch;
  }
};

/// The variable table of a session, in the order of add() calls. All executables of the session
/// share the table, so a variable has the same address in all programs.
class Variables {
 public:
  /// Adds a variable; a nullopt `kind` means `control`. If the variable exists already, checks that
  /// its type equals `type`. Then replaces its kind if `kind` is set, and its shard if `shard` is
  /// set.
  void add(const std::string& name, const Type& type, std::optional<VariableKind> kind,
           std::optional<TensorShard> shard = {});
  const Variable* find(std::string_view name) const;  ///< null if there is no such variable
  /// Throws UserError if there is no such variable. The message suggests the most similar name.
  const Variable& at(std::string_view name) const;
  const std::vector<Variable>& all() const { return variables_; }
  int64_t bytes() const { return bytes_; }
  /// Makes the offset of the next variable that is added a multiple of kMapAlignment.
  void align_next() { bytes_ = (bytes_ + kMapAlignment - 1) / kMapAlignment * kMapAlignment; }

 private:
  std::vector<Variable> variables_;
  std::map<std::string, size_t, std::less<>> position_;  ///< name -> index in variables_
  int64_t bytes_ = 0;
};

/// Returns the variables that program `recorded` declares, in declaration order. `options` may
/// override their dtypes. Offsets are not set.
std::vector<Variable> recorded_variables(const ir::Program& recorded, const Options& options);

/// Adds the variables that the main graph of a compiled program reads or writes. Variables that
/// `recorded` declares get VariableKind::recorded. `rank`: rank of this process.
void add_variables(const ir::Program& final_program, const ir::Program& recorded, int64_t rank,
                   Variables& to);

/// Minimum size of precomputed weights that are mapped from a file. Smaller ones are computed in
/// less time than a file takes.
constexpr int64_t kMinMappedWeights = int64_t{1} << 20;
/// Returns the bytes of the variables that a program stores.
int64_t stored_bytes(const ir::Program& program);
/// Adds the variables of a compiled program of precomputed weights (passes/precompute_weights.h),
/// as add_variables() does. The new variables are the only ones in the returned range, which is
/// aligned to kMapAlignment. The range is empty if the weights have less than kMinMappedWeights
/// bytes.
StateRange add_weight_variables(const ir::Program& final_program, const ir::Program& recorded,
                                int64_t rank, Variables& to);

/// Returns whether an initialiser sets the variable. False for the random state, half-precision
/// weights and scratch.
bool is_initialised(const Variable& variable);

/// New variables, grouped by how they are initialised.
struct StartupPlan {
  /// Names of zero-initialised variables, which need no code because new memory is zero.
  std::set<std::string> zeros;
  std::vector<VariableDecl> computed;  ///< variables whose values the startup program computes
  std::set<std::string> computed_names() const;
};
/// Finds the initialisers of the variables named in `wanted`. The first of `programs` that declares
/// a variable provides its initialiser; `table` provides its type.
StartupPlan plan_startup_values(const std::set<std::string>& wanted, const Variables& table,
                                const std::vector<const ir::Program*>& programs);

}  // namespace fluid
