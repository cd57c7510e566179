#pragma once

// LLVM's IR headers: seconds to parse, so only the emitter's own files include this.

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
