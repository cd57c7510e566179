#include "frontend/spectral_norm.h"

#include <numeric>

#include "frontend/layer_parameters.h"
#include "ops/internal_functions.h"
#include "ops/operators.h"
#include "ops/record.h"

namespace fluid {
namespace {

/// Reshapes the weight to a matrix whose row index is the index along dimension `dim`.
Value as_matrix(Value weight, int64_t dim, const Loc& loc) {
  const Shape& shape = weight.shape();
  const int64_t rows = shape[static_cast<size_t>(dim)].size;
  std::vector<int64_t> perm(shape.size());
  std::iota(perm.begin(), perm.end(), 0);
  perm.erase(perm.begin() + dim);
  perm.insert(perm.begin(), dim);
  if (dim != 0) weight = transpose(weight, {.perm = perm}, loc);
  return reshape(weight, Shape{rows, shape.numel().size / rows}, loc);
}

}  // namespace

Value spectral_norm(Value weight, const SpectralNorm& options, const Loc& loc) {
  ir::Graph& graph = input_graph(weight, "spectral_norm", loc);
  const Shape& shape = weight.shape();
  const std::string subject = "spectral_norm: ";
  require(
      is_float(weight.dtype()) && shape.rank() >= 2 && !shape.has_batch() && shape.numel().size > 0,
      loc,
      subject + "the weight is " + weight.type().str() +
          ", not a float tensor with two or more fixed dimensions");
  const int64_t dim = options.dim < 0 ? options.dim + shape.rank() : options.dim;
  require(dim >= 0 && dim < shape.rank(), loc,
          subject + weight.type().str() + " has no dimension " + std::to_string(options.dim));
  ir::ScopedRecording as(graph, layer_recording(graph, "spectral_norm", options.name));
  const Value matrix = as_matrix(weight, dim, loc);
  const auto vector = [&](const char* name, size_t d) {
    return record_source(graph, "state", scoped_name(graph.recording.scope, name),
                         Type{weight.dtype(), {matrix.shape()[d]}, {}}, Init::normal(0, 1).attrs(),
                         loc);
  };
  const Value old_u = vector("u", 0), old_v = vector("v", 1);
  const Values vectors = internal::power_iteration(
      matrix, old_u, old_v, {.iterations = options.iterations, .eps = options.eps}, loc);
  const Value u = vectors[0], v = vectors[1];
  const Value row = reshape(v, Shape{1, matrix.shape()[1].size}, loc);
  const Value sigma = sum(u * sum(matrix * row, {.axes = 1}, loc), {}, loc);
  record_store(graph, old_u.op()->symbol, u, loc);
  record_store(graph, old_v.op()->symbol, v, loc);
  return div(weight, sigma, loc);
}

}  // namespace fluid
