#pragma once

// Includes the headers of LLVM IR. They take seconds to parse, so only the source files of the
// emitter include this header.

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
