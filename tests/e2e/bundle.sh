#!/usr/bin/env bash
# The bundle runs where there is nothing but glibc: unpacked into an empty root, it trains a few steps.
set -euo pipefail
cd "$(dirname "$0")/../.."
archive=$(scripts/bundle | tail -1 | cut -d' ' -f1)
size=$(stat -c %s "$archive")
if [ "$size" -gt 40000000 ]; then echo "the bundle has $size bytes, over 40 MB"; exit 1; fi

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
tar -C "$root" -xf "$archive"
mkdir -p "$root/lib64" "$root/tmp" "$root/lib/x86_64-linux-gnu"
cp -L /lib64/ld-linux-x86-64.so.2 "$root/lib64/"
for library in libc.so.6 libm.so.6 libdl.so.2 librt.so.1 libpthread.so.0; do
  cp -L "/lib/x86_64-linux-gnu/$library" "$root/lib/x86_64-linux-gnu/"
done

enter=(chroot "$root")
if [ "$(id -u)" -ne 0 ]; then
  if ! unshare -r true 2> /dev/null; then echo "skipped: neither root nor user namespaces"; exit 77; fi
  enter=(unshare -r chroot "$root")
fi
env -i HOME=/tmp "${enter[@]}" /fluid/fluidrun devices
env -i HOME=/tmp "${enter[@]}" /fluid/fluidrun train mnist_fluid --data digits --batch 100 --epochs 1 \
  --max-steps 20 --save /tmp/p.safetensors
test -s "$root/tmp/p.safetensors"
