#pragma once

// Includes the headers of LLVM IR. Only the source files of the emitter include this header,
// because it takes seconds to parse.

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
