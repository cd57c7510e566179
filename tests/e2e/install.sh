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
dpkg-deb -f packages/*.deb Depends | grep -q 'libgomp1'

# A root with the files of the package and the libraries of the packages that it depends on, and nothing else.
enter=("$(command -v chroot || echo /usr/sbin/chroot)")
if [ "$(id -u)" -ne 0 ]; then
  if ! unshare -r true 2> /dev/null; then echo "not run in a root of its own: no user namespaces"; exit 0; fi
  enter=("$(command -v unshare)" -r "${enter[@]}")
fi
LD_LIBRARY_PATH=$deb_lib ldd by_deb root/usr/bin/fluidrun "$deb_lib/libfluid.so" | grep -oE '/[^ ]+' |
  grep -v "^$work\|:$" | sort -u | while read -r library; do
    [ -e "root$library" ] || install -D "$library" "root$library"
  done
strip by_deb
mkdir -p root/tmp root/proc/self
cp by_deb root/
ln -s /usr/bin/fluidrun root/proc/self/exe  # where fluidrun looks for its examples
run() { env -i HOME=/tmp LD_LIBRARY_PATH="/${deb_lib#root/}" "${enter[@]}" root "$@"; }
run /usr/bin/fluidrun train mnist_fluid --data digits --batch 100 --max-steps 2 2> /dev/null
in_root() { cp -r "$1" "$rooted/root" && cd "$rooted" && run /by_deb "$1" && cp root/mnist.* "$OLDPWD"; }
export -f in_root run
rooted=$work
export rooted deb_lib
printf '#!/usr/bin/env bash\nenter=(%s)\nin_root "$1"\n' "${enter[*]}" > by_deb_in_root
chmod +x by_deb_in_root
"$here/style_program.sh" by_deb_in_root

page=root/usr/share/man/man1/fluidrun-train.1
if [ -f $page.gz ]; then gzip -d $page.gz; fi
grep -q -- '\\-\\-epochs\|--epochs' $page
bash -c 'source root/usr/share/bash-completion/completions/fluidrun; complete -p fluidrun' > /dev/null
