#!/usr/bin/env bash
# The installed tree: install.sh BUILD_TREE. It is moved after it was installed. Programs of a user's own are built
# against it by find_package, and against the files of the .deb by pkg-config, and they train.
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

# Each way of a user's own: the program, and what it needs to find libfluid.so.
trains() { LD_LIBRARY_PATH=$2 "$here/style_program.sh" "$1"; }
cmake -G Ninja -S "$here/own_program" -B by_cmake -Dfluid_DIR="$lib/cmake/fluid" -DCMAKE_BUILD_TYPE=Release > /dev/null
cmake --build by_cmake > /dev/null
trains by_cmake/own_program ""
strip by_cmake/own_program
size=$(stat -c %s by_cmake/own_program)
if [ "$size" -gt 1000000 ]; then fail "a stripped program takes $size bytes"; fi

(cd "$build" && cpack -G DEB -B "$work/packages" > /dev/null)
dpkg-deb -x packages/*.deb root
deb_lib=$(dirname "$(find root -name libfluid.so)")
# shellcheck disable=SC2046
c++ -std=c++20 -Wall -Wextra -Werror "$here/programs/style.cpp" -o by_deb \
  $(PKG_CONFIG_PATH=$work/$deb_lib/pkgconfig pkg-config --cflags --libs fluid)
trains by_deb "$work/$deb_lib"
dpkg-deb -f packages/*.deb Depends | grep -q 'libgomp1'

# fluidrun of the .deb, its man page and its completions.
export LD_LIBRARY_PATH=
root/usr/bin/fluidrun train mnist_fluid --data digits --batch 100 --max-steps 2 2> /dev/null
gzip -cd root/usr/share/man/man1/fluidrun-train.1.gz 2> /dev/null > page || cp root/usr/share/man/man1/fluidrun-train.1 page
grep -q -- '\\-\\-epochs\|--epochs' page
bash -c 'source root/usr/share/bash-completion/completions/fluidrun; complete -p fluidrun' > /dev/null
