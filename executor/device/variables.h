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

/// What a variable is to those who keep it.
enum class VariableKind : uint8_t {
  recorded,   ///< by the user: a parameter, or a state such as a running mean
  optimizer,  ///< a parameter's moment: training cannot go on without it
  control,    ///< a counter, the loss scale: where it is missing, it starts anew
  scratch,    ///< nothing to keep between runs: a `state` with the attribute kScratch
};
std::string_view name_of(VariableKind kind);

/// What one process has of a tensor whose elements several share.
struct PartOfTensor {
  std::vector<int64_t> whole;  ///< the tensor's extents
  std::vector<int64_t> cuts;   ///< where each rank's elements begin, and their number
  int rank = 0;
  int64_t elements(int of) const { return cuts[size_t(of) + 1] - cuts[size_t(of)]; }
  /// Where rank `of`'s elements lie in the tensor.
  std::byte* in(Tensor& tensor, int of) const;
  /// A copy of this process's elements of it.
  Tensor own_of(const Tensor& tensor) const;
};

/// A named variable of a session: a parameter, an optimizer's state, a counter.
struct Variable {
  std::string name;
  Type type;
  VariableKind kind = VariableKind::control;
  int64_t offset = 0;                     ///< in the state region, a multiple of 64
  std::optional<PartOfTensor> part = {};  ///< `type` is then that of a vector
  bool saved() const { return kind == VariableKind::recorded; }
};

/// The variables of a session, in the order in which its programs named them. All of a session's
/// executables see one table, so each variable has one address.
class Variables {
 public:
  /// Adds a variable, or checks that a known one has the same type. The kind is that of the first
  /// program that knows it; without one, `control`.
  void add(const std::string& name, const Type& type, std::optional<VariableKind> kind,
           std::optional<PartOfTensor> part = {});
  const Variable* find(std::string_view name) const;  ///< null when absent
  /// Throws UserError with a near miss when absent.
  const Variable& named(std::string_view name) const;
  const std::vector<Variable>& all() const { return variables_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::vector<Variable> variables_;
  std::map<std::string, size_t, std::less<>> position_;  ///< by name
  int64_t bytes_ = 0;
};

/// The variables that the user's program declares, in order, as all steps with these options have
/// them; without their places.
std::vector<Variable> recorded_variables(const ir::Program& recorded, const Options& options);

/// Adds what the main graph of a compiled program reads or writes; what `recorded` declares is
/// saved. `rank`: of this process.
void add_variables(const ir::Program& final_program, const ir::Program& recorded, int64_t rank,
                   Variables& to);

/// Whether the variable has a first value of its own: not the random state, nor copies of
/// parameters, nor what means nothing before a step has written it.
bool is_initialised(const Variable& variable);

/// How variables get their first values.
struct Startup {
  std::set<std::string> zeros;      ///< those that memory, which comes zeroed, has already
  std::vector<NewVariable> filled;  ///< those that the startup program fills
  std::set<std::string> names_of_filled() const;
};
/// Finds how the variables `wanted` begin. The first of `programs` that declares a variable says
/// so; `table` has its type.
Startup startup_of(const std::set<std::string>& wanted, const Variables& table,
                   const std::vector<const ir::Program*>& programs);

}  // namespace fluid
