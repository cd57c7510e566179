#!/usr/bin/env bash
# The .deb: package.sh BUILD_TREE. A program of a user's own is built against its files by pkg-config. It and fluidrun
# train in a root that holds these files, and the libraries of the packages that they depend on.
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

(cd "$build" && cpack -G DEB -B "$work/packages" > /dev/null)
dpkg-deb -x packages/*.deb root
deb_lib=$(dirname "$(find root -name libfluid.so)")
# shellcheck disable=SC2046
c++ -std=c++20 -Wall -Wextra -Werror "$here/programs/style.cpp" -o by_deb \
  $(PKG_CONFIG_PATH=$work/$deb_lib/pkgconfig pkg-config --cflags --libs fluid)
dpkg-deb -f packages/*.deb Depends | grep -q 'libgomp1'

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
