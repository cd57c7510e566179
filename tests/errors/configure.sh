#!/usr/bin/env bash
# What the build's option FLUID_CUDA takes, and that it refuses all else: configure.sh CMAKE.
set -euo pipefail
cmake=$1
folder=$(cd "$(dirname "$0")/../.." && pwd)/cmake
script=$(mktemp --suffix=.cmake)
trap 'rm -f "$script"' EXIT
cat > "$script" << END
include($folder/FluidCuda.cmake)
fluid_cuda_wanted(wanted)
message("\${wanted}")
END
wanted() { "$cmake" "-DFLUID_CUDA=$1" -P "$script" 2>&1; }
expect() {
  local word
  for word in "${@:2}"; do
    test "$(wanted "$word")" = "$1" || { echo "'$word' is not $1: $(wanted "$word")"; exit 1; }
  done
}
expect AUTO AUTO auto
expect ON ON on 1 YES true
expect OFF OFF off 0 No FALSE
for word in maybe "" 13 AUTOMATIC; do
  if said=$(wanted "$word"); then echo "'$word' is not refused"; exit 1; fi
  grep -qF "FLUID_CUDA is '$word': it may be ON, OFF or AUTO" <<< "$said" || { echo "$said"; exit 1; }
done
