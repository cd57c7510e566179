#!/usr/bin/env bash
# Dependencies go one way: ir <- ops <- {frontend, passes, codegen} <- executor. frontend/fluid.h, the
# umbrella that users include, may also include the executor's public headers.
set -euo pipefail
declare -A may=(
  [ir]="ir" [ops]="ir ops" [passes]="ir ops passes" [codegen]="ir ops codegen"
  [frontend]="ir ops frontend" [executor]="ir ops frontend passes codegen executor"
)
bad=0
for folder in "${!may[@]}"; do
  while IFS=: read -r file line include; do
    [ "$file" = frontend/fluid.h ] && continue
    case $file in frontend/examples/*) continue ;; esac
    target=${include#*\"}
    target=${target%%/*}
    case $target in ir | ops | passes | codegen | frontend | executor) ;; *) continue ;; esac
    if ! grep -qw "$target" <<< "${may[$folder]}"; then
      echo "$file:$line: $folder may not include $target"
      bad=1
    fi
  done < <(grep -rnoE '^#include "[a-z]+/[^"]*"' "$folder" --include='*.h' --include='*.cpp' || true)
done
# Vendor headers stay where they are used: a header, and the files that may include it.
while read -r header files; do
  while IFS=: read -r file line _; do
    grep -qxE "$files" <<< "$file" && continue
    echo "$file:$line: <$header> is for $files"
    bad=1
  done < <(grep -rnE "^ *# *include *[<\"]$header" --include='*.h' --include='*.cpp' "${!may[@]}" || true)
done << 'END'
llvm(-c)?/ codegen/([a-z_]+\.cpp|llvm_headers\.h)
dnnl executor/cpu/onednn[a-z_]*\.(h|cpp)
gloo/ executor/comm/gloo\.cpp
(cuda|cublas|cudnn|nccl|nvJitLink)[a-zA-Z_]*\.h executor/cuda/[a-z_]+\.(h|cpp)
omp\.h executor/cpu/(parallel|idle_threads)\.cpp
CLI/ executor/fluidrun(/[a-z_]+)?\.cpp
nlohmann/ (frontend|executor)/[a-z_/]+\.cpp
zlib\.h frontend/files/[a-z_]+\.cpp
flatbuffers/|program_generated\.h ir/(de)?serialize\.cpp
fmt/ executor/([a-z_/]+\.cpp|fluidrun/print_to\.h)
xxhash\.h [a-z_/]+\.cpp
END
exit $bad
