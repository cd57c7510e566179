#!/usr/bin/env bash
# The installed tree: install.sh BUILD_TREE. It is moved after it was installed. A program of a user's own is built
# against it by find_package, and trains.
set -euo pipefail
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
if [ ! -f "$build/libfluid.so" ] || [ ! -f "$build/manual/man1/fluidrun.1" ]; then
  echo "skipped: libfluid.so and the man pages are not built"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() { echo "$*" >&2; exit 1; }

cmake --install "$build" --prefix "$work/first" --strip > /dev/null
mv first prefix
prefix=$work/prefix
lib=$(dirname "$(find "$prefix" -name libfluid.so)")
if grep -rIlF -e "$build" -e "$work/first" "$prefix"; then fail "these name a folder of the machine"; fi
nm -DC --defined-only "$lib/libfluid.so" > symbols
if grep -v ' fluid::\| for fluid::' symbols | grep . ; then fail "these symbols are not Fluid's"; fi
if grep 'llvm::' symbols; then fail "these symbols name LLVM's types"; fi
grep -q ' fluid::Executor::run(' symbols

cmake -G Ninja -S "$here/own_program" -B by_cmake -Dfluid_DIR="$lib/cmake/fluid" -DCMAKE_BUILD_TYPE=Release > /dev/null
cmake --build by_cmake > /dev/null
"$here/style_program.sh" by_cmake/own_program
strip by_cmake/own_program
size=$(stat -c %s by_cmake/own_program)
if [ "$size" -gt 1000000 ]; then fail "a stripped program takes $size bytes"; fi
