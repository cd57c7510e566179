#include "frontend/parameter.h"

#include "frontend/program_registry.h"
#include "ops/record.h"

namespace fluid {

Value record_parameter(ir::Graph& graph, const std::string& name, const Shape& shape,
                       const Init& init, const ParameterOptions& options, const Loc& loc) {
  // Records only options with non-default values, so that a new option in Fluid does not change the
  // files of existing programs.
  Attrs attrs = init.attrs();
  if (!options.trainable) attrs.set("trainable", false);
  if (options.lr_scale != 1) attrs.set("lr_scale", options.lr_scale);
  if (!options.weight_decay) attrs.set("weight_decay", false);
  if (options.sparse) attrs.set("sparse", true);
  if (options.l1 != 0) attrs.set("l1", options.l1);
  if (options.l2 != 0) attrs.set("l2", options.l2);
  if (options.max_norm != 0) attrs.set("max_norm", options.max_norm);
  const std::string& scope = graph.recording.scope;
  const std::string scoped = scope.empty() ? name : scope + "." + name;
  const Type type{options.dtype, shape, {}};
  init.check_shape(scoped, type, loc);
  return record_source(graph, "param", scoped, type, attrs, loc);
}

Value parameter(const std::string& name, const Shape& shape, const Init& init,
                const ParameterOptions& options, const Loc& loc) {
  return record_parameter(current_program(name, loc).main(), name, shape, init, options, loc);
}

}  // namespace fluid
