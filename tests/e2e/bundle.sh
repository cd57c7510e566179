#!/usr/bin/env bash
# The bundle runs where there is nothing but glibc: unpacked into an empty root, it trains a few
# steps. bundle.sh DIR, a finished build.
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
if [ ! -x "$build/fluidrun" ] || [ ! -x "$build/examples/mnist_fluid" ]; then
  echo "skipped: fluidrun and the examples are not built"
  exit 77
fi
enter=("$(command -v chroot || echo /usr/sbin/chroot)")
if [ "$(id -u)" -ne 0 ]; then
  if ! unshare -r true 2> /dev/null; then echo "skipped: neither root nor user namespaces"; exit 77; fi
  enter=("$(command -v unshare)" -r "${enter[@]}")
fi

archive=$(scripts/bundle "$build" | tail -1 | cut -d' ' -f1)
size=$(stat -c %s "$archive")
echo "$archive: $size bytes"
if [ "$size" -gt 40000000 ]; then echo "the bundle is over 40 MB"; exit 1; fi

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
tar -C "$root" -xf "$archive"
if grep -rlF "$PWD/" "$root/fluid"; then echo "these name a folder of the machine that they were built on"; exit 1; fi
mkdir -p "$root/tmp" "$root/proc/self"
ln -s /fluid/fluidrun "$root/proc/self/exe"  # by which the loader finds the libraries beside it
ldd "$build/fluidrun" | grep -oE '/[^ ]*/(ld-linux|libc\.|libm\.|libdl\.|librt\.|libpthread\.)[^ ]*' |
  while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
  done

run() { env -i HOME=/tmp "${enter[@]}" "$root" /fluid/fluidrun "$@"; }
run devices | grep '^cuda    none: '  # of CUDA the bundle holds nothing but our own library
run train mnist_fluid --data digits --batch 100 --max-steps 20 --save /tmp/p.safetensors
run predict mnist_fluid --params /tmp/p.safetensors --data digits --draw 1
test -s "$root/tmp/p.safetensors"
