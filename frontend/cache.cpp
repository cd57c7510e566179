#include "frontend/cache.h"

#include "frontend/layer_parameters.h"
#include "ops/random/initializer.h"
#include "ops/record.h"
#include "ops/source_kind.h"

namespace fluid {

Value cache(ir::Graph& graph, const std::string& name, const Shape& shape, DType dtype,
            const Loc& loc) {
  return record_source(graph, "state", scoped_name(graph.recording.scope, name),
                       Type{dtype, shape, {}}, {{kCacheAttribute, true}}, loc);
}

void update_cache(Value cached, Value next, const Loc& loc) {
  ir::Graph& graph = input_graph(cached, "update_cache", loc);
  const ir::Op& state = *cached.op();
  require(is_cache(state), loc, "update_cache: the value of " + state.name + " is not a cache");
  require(next && next.type() == cached.type(), loc,
          "update_cache: the new value is " + (next ? next.type().str() : "empty") + ", but '" +
              state.symbol + "' is " + cached.type().str());
  record_store(graph, state.symbol, next, loc);
}

}  // namespace fluid
