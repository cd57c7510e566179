#include "codegen/emit_math.h"

#include "ir/error.h"

namespace fluid::emit {
llvm::Value* elementary(llvm::IRBuilder<>&, Scalar, llvm::Value*) {
  throw InternalError("not an elementary function");
}
llvm::Value* power(llvm::IRBuilder<>&, llvm::Value*, llvm::Value*) {
  throw InternalError("not an elementary function");
}
}  // namespace fluid::emit
