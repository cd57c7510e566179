#!/usr/bin/env bash
# tests/gpu/check.py, which checks GPUs, on a finished build and the host that stands in for a GPU:
# gpu_check.sh DIR trajectories | others. It says what is good, and fails where something is not.
# $FLUID_PEERS: an environment with PyTorch, for the benchmark, whose side then runs on the CPU.
set -euo pipefail
build=$(cd "$1" && pwd)
part=$2
tests=$(cd "$(dirname "$0")/.." && pwd)
if ! command -v python3 > /dev/null; then echo "skipped: no python3"; exit 77; fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
run() { python3 "$tests/gpu/check.py" --build "$build" --out "$out/check" --programs linear_regression "$@"; }

export FLUID_GPU_LIBRARY=$build/gpu_libraries/stand_in.so
if [ "$part" = trajectories ]; then
  modes='bf16 o2'
  if [ -n "${FLUID_TEST_ALL:-}" ]; then modes='f32,bf16 o1,bf16 o2,f16 o1,f16 o2'; fi
  count=$(tr , '\n' <<< "$modes" | wc -l)
  run --stages trajectories --networks mnist_cnn --steps 2 --modes "$modes" | tee "$out/said"
  test "$(grep -c '^ok .*: [0-9.]* of what is allowed' "$out/said")" = "$count"
  test "$(grep -c '^ok .* takes what was planned without the GPU: ' "$out/said")" = "$count"
  test "$(grep -c '^ok .* gives the same bits again$' "$out/said")" = "$count"
  exit
fi

stages=devices,programs expected=3
if [ -x "$build/test_gpu" ]; then stages+=,gpu_tests expected=4; fi
run --stages "$stages" --filter GpuAlone.LeavesAStepWhoseDataIsRefused | tee "$out/said"
test "$(grep -c '^ok ' "$out/said")" = "$expected"
tar -tzf "$out/check.tar.gz" | grep -q '^check/summary.json$'

if [ -x "$build/test_gpu" ]; then
  ln -s "$tests/support/compute_sanitizer.py" "$out/compute-sanitizer"
  PATH=$out:$PATH run --stages sanitizer --filter GpuAlone.LeavesAStepWhoseDataIsRefused | tee "$out/said"
  test "$(grep -c '^ok ' "$out/said")" = 2
fi
if [ -x "$build/fluid_bench" ]; then
  "$build/fluid_bench" seed_cnn_infer "$out/cache" cuda:0 < /dev/null > "$out/said"
  grep -q '^{"ready": .* "arithmetic_ms": .*}$' "$out/said"
fi
peer=${FLUID_PEERS:-$tests/../build/peers}/bin/python
if [ ! -x "$build/fluid_bench" ] || ! "$peer" -c 'import torch' 2> /dev/null; then
  echo "the benchmark is left out: no fluid_bench, or no PyTorch in $peer"
else
  cat > "$out/python" << END
#!/bin/sh
case \$1 in -c) exec "$peer" "\$@" ;; esac
exec "$peer" "$tests/support/torch_on_cpu.py" "\$@"
END
  chmod +x "$out/python"
  # What it measures misses its targets here: that all of it is measured is what counts.
  run --stages bench --works linear_regression --python "$out/python" > "$out/said" || true
  cat "$out/said"
  grep -q '^FAIL bench linear_regression: eager [0-9.]* (<= 0.3); compiled [0-9.]* (<= 0.7); memory [0-9.]* (<= 0.8)$' "$out/said"
  grep -q '"nvJitLink": "0.0"' "$out/check/bench.json"
fi

export FLUID_GPU_LIBRARY=$build/gpu_libraries/no_driver.so
if run --stages devices,programs > "$out/said"; then echo "no GPU is no failure"; exit 1; fi
grep -q '^FAIL cuda:0 can be used: no NVIDIA driver' "$out/said" || { cat "$out/said"; exit 1; }
if [ -x "$build/test_gpu" ]; then
  unset FLUID_GPU_LIBRARY
  export CUDA_VISIBLE_DEVICES=
  if run --stages gpu_tests --filter 'GpuAlone.*:Gpu/GpuConformance.*' > "$out/said"; then
    echo "tests that are skipped are no failure"
    exit 1
  fi
  test "$(grep -c '^FAIL [^ ]*: [0-9]* skipped: no GPU' "$out/said")" = 2 || { cat "$out/said"; exit 1; }
fi
