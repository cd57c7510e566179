#include "ops/length.h"

#include <algorithm>
#include <optional>

#include "ir/length.h"
#include "ops/arguments.h"

namespace fluid {
namespace {

// Two concrete lengths, at which types are inferred to derive the types at the symbolic length.
// They are primes, to distinguish constant factors from powers of the length. They exceed usual
// window sizes and strides.
constexpr int64_t kFirst = 1009, kSecond = 1013;

/// Returns the extent constant * length^k that equals `a` at length kFirst and `b` at length
/// kSecond, or nullopt if there is none with k <= kMaxLengthPower.
std::optional<Dim> interpolated(const Dim& a, const Dim& b) {
  if (a == b) return a;
  Dim dim = a;
  for (dim.length_power = 1; dim.length_power <= kMaxLengthPower; ++dim.length_power) {
    if (dim.size % kFirst != 0) return std::nullopt;
    dim.size /= kFirst;
    if (dim.at_length(kSecond) == b) return dim;
  }
  return std::nullopt;
}

/// Infers the result types of one op whose operand or attribute types depend on kLength.
class LengthInference {
 public:
  LengthInference(const OpDef& def, const std::vector<Type>& in, const Attrs& attrs, const Loc& loc)
      : def_(def), in_(in), attrs_(attrs), loc_(loc) {}

  std::vector<Type> result_types() const {
    std::vector<Type> types = infer_at(kFirst);
    const std::vector<Type> second = infer_at(kSecond);
    for (size_t i = 0; i < types.size(); ++i) interpolate(types[i].shape, second.at(i).shape);
    return types;
  }

 private:
  std::vector<Type> infer_at(int64_t length) const {
    std::vector<Type> types;
    for (const Type& type : in_) types.push_back(type.at_length(length));
    const Attrs attrs = ir::at_length(attrs_, length);
    const Loc none;
    try {
      return (*def_.infer)(InferCtx(*def_.name, types, attrs, none));
    } catch (const UserError& why) {
      throw_rejection(why, length);
    }
  }

  /// Reports `why`, the error of `infer` at `length`, as a UserError. If `infer` also rejects the
  /// symbolic types, throws the latter error instead, because its message shows the length as L.
  [[noreturn]] void throw_rejection(const UserError& why, int64_t length) const {
    (*def_.infer)(InferCtx(*def_.name, in_, attrs_, loc_));
    throw UserError(loc_, *def_.name + ": " + given_text() +
                              " do not fit for every length; for the length " +
                              std::to_string(length) + ": " + why.what());
  }

  void interpolate(Shape& shape, const Shape& second) const {
    check(shape.size() == second.size(),
          [&] { return *def_.name + ": the length changes the rank"; });
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const std::optional<Dim> dim = interpolated(shape[axis], second[axis]);
      if (!dim) throw_not_multiple(axis, shape[axis], second[axis]);
      shape[axis] = *dim;
    }
  }

  [[noreturn]] void throw_not_multiple(size_t axis, const Dim& first, const Dim& second) const {
    throw UserError(loc_, *def_.name + ": axis " + std::to_string(axis) + " of the result of " +
                              given_text() + " is no multiple of the length: it is " + first.str() +
                              " for the length " + std::to_string(kFirst) + " and " + second.str() +
                              " for the length " + std::to_string(kSecond));
  }

  /// Returns the types of the operands and the types among the attributes, as text.
  std::string given_text() const {
    std::vector<Type> given = in_;
    for (const auto& [name, attr] : attrs_) {
      if (const Type* type = std::get_if<Type>(&attr)) given.push_back(*type);
    }
    return to_string(given);
  }

  const OpDef& def_;
  const std::vector<Type>& in_;
  const Attrs& attrs_;
  const Loc& loc_;
};

}  // namespace

std::vector<Type> infer_result_types(const OpDef& def, const std::vector<Type>& in,
                                     const Attrs& attrs, const Loc& loc) {
  const auto has_length = [](const Type& type) { return type.shape.has_length(); };
  if (std::ranges::any_of(in, has_length) || ir::has_length(attrs)) {
    return LengthInference(def, in, attrs, loc).result_types();
  }
  return (*def.infer)(InferCtx(*def.name, in, attrs, loc));
}

}  // namespace fluid
