#!/usr/bin/env bash
# Two processes with empty caches compile the same objects and, with everything at its default, train
# the same parameters, byte for byte: determinism.sh FLUIDRUN
set -euo pipefail
unset FLUID_KERNEL_CACHE  # each process has a cache of its own
fluidrun=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

train() {  # RUN PROGRAM DATA ARGUMENTS...
  local out="$work/$2.$1" program=$2 data=$3
  shift 3
  mkdir "$out"
  "$fluidrun" train "$program" --data "$data" "$@" --cache-dir "$out/kernels" \
    --save "$out/w.safetensors" 2> "$out.log" > /dev/null || { cat "$out.log"; exit 1; }
}

same() {  # PROGRAM DATA ARGUMENTS...
  train first "$@"
  train second "$@"
  test "$(find "$work/$1.first/kernels" -type f -size +0 | wc -l)" -gt 0
  diff -r "$work/$1.first" "$work/$1.second"
}

same mnist_fluid 'digits?n=250' --batch 100 --epochs 2
same mnist_cnn 'digits?n=250' --batch 100 --epochs 2
same linear_regression 'synthetic-linear?n=5000' --batch 5000 --epochs 20
