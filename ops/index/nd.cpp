#include "ops/index/nd.h"

#include <algorithm>

namespace fluid {
namespace {

bool is_batch_dim(const Dim& d) { return d.batch; }

}  // namespace

Shape NdView::slices() const {
  Shape shape = batch;
  shape.insert(shape.end(), positions.begin(), positions.end());
  shape.insert(shape.end(), slice.begin(), slice.end());
  return shape;
}

AttrDef batch_dims_attr() {
  return {"batch_dims", int64_t{0},
          "number of leading dimensions of x and index that correspond to each other"};
}

NdView nd_view(const Attrs& attrs, const Shape& x, const Shape& index) {
  const auto batch = static_cast<ptrdiff_t>(attrs.get<int64_t>("batch_dims"));
  const auto first = x.begin() + batch, last = first + index.back().size;
  return {.batch = Shape(x.begin(), first),
          .indexed = Shape(first, last),
          .slice = Shape(last, x.end()),
          .positions = Shape(index.begin() + batch, index.end() - 1)};
}

NdView require_nd(const InferCtx& c) {
  const Type &x = c.in(0), &index = c.in(1);
  const int64_t batch = c.attr<int64_t>("batch_dims");
  c.require(is_integer(index.dtype) && !index.shape.empty() && !index.shape.back().batch,
            "the index must be an integer tensor [..., K], not " + index.str());
  const int64_t depth = index.shape.back().size;
  c.require(batch >= 0 && batch < index.shape.rank() && batch + depth <= x.shape.rank() &&
                std::equal(x.shape.begin(), x.shape.begin() + batch, index.shape.begin()),
            "index " + index.str() + " does not fit to " + x.str() + " with " +
                std::to_string(batch) + " batch dimensions");
  NdView view = nd_view(c.attrs(), x.shape, index.shape);
  c.require(std::ranges::none_of(view.indexed, is_batch_dim),
            "the batch dimension of " + x.str() + " cannot be indexed");
  c.require(std::ranges::count_if(view.slices(), is_batch_dim) <= 1,
            x.str() + " and index " + index.str() + " both have the batch dimension");
  return view;
}

}  // namespace fluid
