#pragma once

// LLVM's IR headers. They take seconds to parse, so only the emitter's own files include this one.

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
