#pragma once

#include "ops/expr.h"

namespace fluid {

/// Number of heads, queries and keys of an attention.
struct AlibiShape {
  int64_t heads, queries, keys;
};
/// Returns the bias of attention with linear biases (ALiBi) for the score of a query and a key:
/// -slope(head) * |key - (query + keys - queries)|. The last query is aligned with the last key.
Expr alibi_bias(const Expr& head, const Expr& query, const Expr& key, const AlibiShape& shape,
                DType dtype);

}  // namespace fluid
