#pragma once

#include <map>
#include <string>
#include <vector>

#include "ops/op_def.h"

namespace fluid {

inline bool has_letter(const std::string& letters, char letter) {
  return letters.find(letter) != std::string::npos;
}

/// A parsed einsum equation with one letter per dimension. The dimensions of an ellipsis have
/// letters too.
struct EinsumSpec {
  std::vector<std::string> operands;
  std::string result;
  std::map<char, Dim> extents;

  /// Builds an equation without spaces and ellipses, such as "ab,bc->ac".
  static std::string equation(const std::vector<std::string>& operands, const std::string& result);
  /// Concatenates the letters of the result and of operands `first`, `first` + 1, ...
  std::string letters_from(size_t first) const;
};

/// Parses an equation in the notation of torch.einsum for operands of the given shapes. Calls
/// `fail`, which throws, for an invalid equation.
EinsumSpec einsum_spec(const std::string& equation, const std::vector<Shape>& shapes,
                       const std::function<void(const std::string&)>& fail);
/// Overload for an equation that is known to be valid.
EinsumSpec einsum_spec(const std::string& equation, const Values& operands);

/// A tensor whose dimensions are labeled with einsum letters.
struct LabeledValue {
  Value value;
  std::string labels;
};
/// Takes the diagonal along dimensions that have equal letters. The result has no repeated letter.
LabeledValue diagonal_of(LabeledValue x);
/// Sums over all dimensions whose letter is not in `keep`.
LabeledValue sum_except(LabeledValue x, const std::string& keep);
/// Permutes the dimensions so that their letters are `order`.
LabeledValue permute_to(LabeledValue x, const std::string& order);
/// Multiplies two tensors and sums over the letters that are not in `keep`.
LabeledValue contract(LabeledValue a, LabeledValue b, const std::string& keep);
/// Returns v where the indices along dimensions `a` and `b` are equal, and 0 elsewhere.
Value masked_to_diagonal(Value v, size_t a, size_t b);

}  // namespace fluid
