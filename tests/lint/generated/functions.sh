#!/usr/bin/env bash
# The committed ops/functions.{h,cpp}, ops/{internal_functions,optimizers,schedules}.h and ops/OPS.md are what the generator makes of the op table.
# Usage: functions.sh BUILD_DIR
set -euo pipefail
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
"$1/fluid_opgen" "$fresh"
for file in functions.h internal_functions.h optimizers.h schedules.h functions.cpp OPS.md; do
  if ! diff -u "ops/$file" "$fresh/$file"; then
    echo "ops/$file is stale: build the target 'functions'"
    exit 1
  fi
done
