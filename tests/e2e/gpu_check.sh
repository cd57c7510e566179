#!/usr/bin/env bash
# tests/gpu/check.py, which checks GPUs, on programs that stand for Fluid's, then on Fluid's and the host
# that stands in for a GPU: gpu_check.sh DIR, a finished build. It says what is good, and fails where
# something is not.
set -euo pipefail
build=$(cd "$1" && pwd)
tests=$(cd "$(dirname "$0")/.." && pwd)
if ! command -v python3 > /dev/null; then echo "skipped: no python3"; exit 77; fi
python3 "$tests/gpu/check_test.py"
python3 "$tests/bench/gpu_bench_test.py"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
run() { python3 "$tests/gpu/check.py" --build "$build" --out "$out/check" --programs linear_regression "$@"; }

export FLUID_GPU_LIBRARY=$build/gpu_libraries/stand_in.so
stages=devices,programs expected=3
if [ -x "$build/test_gpu" ]; then stages+=,gpu_tests expected=4; fi
run --stages "$stages" --filter GpuAlone.LeavesAStepWhoseDataIsRefused | tee "$out/said"
test "$(grep -c '^ok ' "$out/said")" = "$expected"
tar -tzf "$out/check.tar.gz" | grep -q '^check/summary.json$'
if [ -x "$build/fluid_bench" ]; then
  "$build/fluid_bench" seed_cnn_infer "$out/cache" cuda:0 < /dev/null > "$out/said"
  grep -q '^{"ready": .* "arithmetic_ms": .*}$' "$out/said"
fi
export FLUID_GPU_LIBRARY=$build/gpu_libraries/no_driver.so
if run --stages devices,programs > "$out/said"; then echo "no GPU is no failure"; exit 1; fi
grep -q 'no NVIDIA driver' "$out/said" || { cat "$out/said"; exit 1; }
