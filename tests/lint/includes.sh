#!/usr/bin/env bash
# Includes go one way. The table gives the folders, each of which may include itself and those named
# behind it; the rooms of executor/, each of which may include those above it, too. frontend/fluid.h, the
# umbrella that users include, and the examples may include the executor's public headers.
set -euo pipefail
order=$(
  cat << 'END'
ir:
ops: ir
passes: ir ops
codegen: ir ops
frontend: ir ops
executor: ir ops frontend passes codegen
executor/options
executor/device
executor/comm
executor/profile
executor/host
executor/cpu_libraries
executor/cpu
executor/gpu_driver
executor/gpu_libraries
executor/gpu
executor/cuda
executor/places
executor/session
executor/debug
executor/checkpoint
executor/tuning
executor/.
executor/quantization
executor/trainer
executor/launcher
executor/fluidrun
END
)
bad=0
# room_of PATH: "executor/cpu/x.h" is in executor/cpu, "executor/executor.h" in executor/., "ops/math/x.h" in ops
room_of() { sed -E 's|^executor/([^/]+)/.*|executor/\1|; t; s|^executor/.*|executor/.|; t; s|/.*||'; }
declare -A place=() above=()
while read -r line; do
  room=${line%%:*}
  case $room in
    */*) place[$room]=${#place[@]} ;;
    *) above[$room]=" $room${line#*:} " ;;
  esac
done <<< "$order"
declare -A rooms=()
while IFS=: read -r file line include; do
  case $file in frontend/fluid.h | frontend/examples/*) continue ;; esac
  target=${include#*\"}
  target=${target%\"}
  case $target in ir/* | ops/* | passes/* | codegen/* | frontend/* | executor/*) ;; *) continue ;; esac
  if [[ ${above[${file%%/*}]} != *" ${target%%/*} "* ]]; then
    echo "$file:$line: ${file%%/*} may not include ${target%%/*}"
    bad=1
  fi
  [[ $file == executor/* && $target == executor/* ]] || continue
  for path in "$file" "$target"; do
    [ -n "${rooms[$path]:-}" ] || rooms[$path]=$(room_of <<< "$path")
    if [ -z "${place[${rooms[$path]}]:-}" ]; then
      echo "$path: ${rooms[$path]} is in no order: see tests/lint/includes.sh"
      exit 1
    fi
  done
  if [ "${place[${rooms[$target]}]}" -gt "${place[${rooms[$file]}]}" ]; then
    echo "$file:$line: ${rooms[$file]} may not include ${rooms[$target]}, which comes after it"
    bad=1
  fi
done < <(grep -rnoE '^#include "[a-z]+/[^"]*"' "${!above[@]}" --include='*.h' --include='*.cpp')
# Vendor headers stay where they are used: a header, and the files that may include it.
while read -r header files; do
  while IFS=: read -r file line _; do
    grep -qxE "$files" <<< "$file" && continue
    echo "$file:$line: <$header> is for $files"
    bad=1
  done < <(grep -rnE "^ *# *include *[<\"]$header" --include='*.h' --include='*.cpp' "${!above[@]}" || true)
done << 'END'
llvm(-c)?/ codegen/([a-z_]+\.cpp|llvm_headers\.h)
dnnl executor/cpu_libraries/onednn[a-z_]*\.(h|cpp)
gloo/ executor/comm/gloo\.cpp
(cuda|cublas|cudnn|nccl|nvJitLink)[a-zA-Z_]*\.h executor/cuda/[a-z_]+\.(h|cpp)
omp\.h executor/host/parallel\.cpp
CLI/ executor/fluidrun/[a-z_]+\.cpp
nlohmann/ (frontend|executor)/[a-z_/]+\.cpp
zlib\.h frontend/files/[a-z_]+\.cpp
flatbuffers/|program_generated\.h ir/(de)?serialize\.cpp
fmt/ executor/([a-z_/]+\.cpp|launcher/print_to\.h)
xxhash\.h [a-z_/]+\.cpp
END
exit $bad
