#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// A named variable of a session: a parameter, an optimizer's state, a counter.
struct Variable {
  std::string name;
  Type type;
  bool saved = false;  ///< recorded by the user: a parameter, or a state such as a running mean
  int64_t offset = 0;  ///< in the state region, a multiple of 64
};

/// The variables of a session, in the order in which its programs named them. All of a session's
/// executables see one table, so each variable has one address.
class Variables {
 public:
  /// Adds a variable, or checks that a known one has the same type.
  void add(const std::string& name, const Type& type, bool saved);
  const Variable* find(std::string_view name) const;  ///< null when absent
  /// Throws UserError with a near miss when absent.
  const Variable& named(std::string_view name) const;
  const std::vector<Variable>& all() const { return variables_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::vector<Variable> variables_;
  int64_t bytes_ = 0;
};

/// Adds what the main graph of a compiled program reads or writes; what `recorded` declares is
/// saved.
void add_variables(const ir::Program& final_program, const ir::Program& recorded, Variables& to);

}  // namespace fluid
