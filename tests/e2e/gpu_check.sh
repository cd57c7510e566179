#!/usr/bin/env bash
# tests/gpu/check.py, which checks GPUs, on the host that stands in for one: gpu_check.sh DIR, a finished
# build. It says what is good, and fails where something is not.
set -euo pipefail
build=$(cd "$1" && pwd)
check=$(cd "$(dirname "$0")/.." && pwd)/gpu/check.py
if ! command -v python3 > /dev/null; then echo "skipped: no python3"; exit 77; fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
run() { python3 "$check" --build "$build" --out "$out" --programs linear_regression --only "$@"; }

export FLUID_GPU_LIBRARY=$build/gpu_libraries/stand_in.so
run devices,programs | tee "$out/said"
test "$(grep -c '^ok ' "$out/said")" = 3
export FLUID_GPU_LIBRARY=$build/gpu_libraries/no_driver.so
if run devices,programs > "$out/said"; then echo "no GPU is no failure"; exit 1; fi
grep -q 'no NVIDIA driver' "$out/said" || { cat "$out/said"; exit 1; }
