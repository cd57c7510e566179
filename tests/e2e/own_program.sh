#!/usr/bin/env bash
# A project of its own finds Fluid in a build tree, builds without a warning and trains:
# own_program.sh BUILD_TREE
set -euo pipefail
tree=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake -G Ninja -S "$here/own_program" -B "$work" -Dfluid_DIR="$tree" -DCMAKE_BUILD_TYPE=Debug
cmake --build "$work"
"$here/style_program.sh" "$work/own_program"
