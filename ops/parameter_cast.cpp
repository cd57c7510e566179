#include "ops/parameter_cast.h"

#include "ops/source_kind.h"

namespace fluid {

const ir::Op* parameter_of_cast(const ir::Op& op) {
  if (op.name != "cast") return nullptr;
  const ir::Op* from = op.operands.at(0).op();
  return source_kind(*from) == SourceKind::parameter ? from : nullptr;
}

}  // namespace fluid
