#include "executor/session/batch_length.h"

#include <fmt/format.h>

#include "ir/error.h"
#include "ir/length.h"
#include "ops/source_kind.h"

namespace fluid {

BatchLength::BatchLength(const ir::Program& recorded) : is_used_(ir::has_length(recorded)) {
  for (const auto& op : recorded.main().ops) {
    if (source_kind(*op) != SourceKind::feed) continue;
    const Type& type = op->results.at(0).type;
    for (size_t axis = 0; axis < type.shape.size(); ++axis) {
      if (type.shape[axis].length_power != 1 || type.shape[axis].size == 0) continue;
      dims_.push_back({.feed = op->symbol, .axis = axis, .type = type, .loc = op->loc});
    }
  }
}

/// Returns the length (kLength) of a batch of `samples` samples, computed from the extent of
/// `column` along `dim`. Throws UserError if the shape of `column` does not fit, or if the length
/// is 0.
int64_t BatchLength::length_in(const FeedDim& dim, const Tensor& column, int64_t samples) {
  const Dim& wanted = dim.type.shape[dim.axis];
  const int64_t factor = wanted.size * (wanted.batch ? samples : 1);
  const bool fits =
      column.shape().size() == dim.type.shape.size() && column.shape()[dim.axis] % factor == 0;
  if (!fits) {
    throw UserError(dim.loc, fmt::format("feed '{}' is {} in a batch of {}; the program takes {}",
                                         dim.feed, column.str(), samples, dim.type.str()));
  }
  const int64_t length = column.shape()[dim.axis] / factor;
  if (length > 0) return length;
  throw UserError(dim.loc, fmt::format("feed '{}' is {}: the length of {} cannot be 0", dim.feed,
                                       column.str(), dim.type.str()));
}

int64_t BatchLength::of(const Batch& batch) const {
  if (!is_used_) return 1;
  const FeedDim* first = nullptr;
  int64_t length = 0;
  for (const FeedDim& dim : dims_) {
    const Tensor* column = batch.find(dim.feed);
    const bool empty = batch.size == 0 && dim.type.shape[dim.axis].batch;
    if (column == nullptr || empty) continue;
    const int64_t given = length_in(dim, *column, batch.size);
    if (first == nullptr) {
      first = &dim;
      length = given;
    } else if (given != length) {
      throw UserError(
          dim.loc, fmt::format("feed '{}' has the length {}, but feed '{}' has the length {}: {} "
                               "for {} and {} for {}",
                               first->feed, length, dim.feed, given, batch.find(first->feed)->str(),
                               first->type.str(), column->str(), dim.type.str()));
    }
  }
  if (first != nullptr) return length;
  const std::string feed = dims_.empty() ? "" : fmt::format(", such as '{}'", dims_[0].feed);
  throw UserError(
      fmt::format("the batch has no feed with a dimension kLength{}: the length is unknown", feed));
}

int64_t BatchLength::checked(int64_t length) const {
  if (is_used_ && length < 1) {
    throw UserError(fmt::format(
        "cannot prepare a step of length {}: the program has the dimension kLength, so set "
        "BatchSizes::lengths or ExecutorOptions::length",
        length));
  }
  if (!is_used_ && length != 0) {
    throw UserError(fmt::format(
        "cannot prepare a step of length {}: the program has no dimension kLength", length));
  }
  return is_used_ ? length : 1;
}

}  // namespace fluid
