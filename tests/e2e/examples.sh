#!/usr/bin/env bash
# What the examples' own command lines promise: examples.sh FOLDER
set -euo pipefail
examples=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

for example in linear_regression california_housing mnist_fluid mnist_cnn multi_task vae gan dlrm resnet18 resnet50 \
  alexnet_cifar10 mobilenet_v3_small unet vit_tiny char_gpt bert_tiny lstm_text ddp_mnist; do
  code=0
  "$examples/$example" > out 2> err || code=$?
  test "$code" -eq 1
  grep -q '^usage: .*--epochs N' err
done

# An epoch of linear regression is one step.
line() { "$examples/linear_regression" --data 'synthetic-linear?limit=1000' "$@"; }
test "$(line --epochs 3)" = "$(line --steps 3)"
test "$(line --epochs 3)" != "$(line --epochs 4)"

"$examples/mnist_cnn" --data 'digits?limit=300' --steps 2 > out
test "$(grep -cE '^image [0-7] is a [0-9] \([01]\.[0-9]{2}\); its label says [0-9]$' out)" -eq 8
