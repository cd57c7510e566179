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
# Vendor headers stay in one folder each.
while read -r hit; do echo "$hit: LLVM is seen by codegen/ only"; bad=1; done < \
  <(grep -rnE '^#include [<"]llvm' --include='*.h' --include='*.cpp' ir ops passes frontend executor | cut -d: -f1,2)
while read -r hit; do echo "$hit: no vendor header in a header"; bad=1; done < \
  <(grep -rnE '^#include [<"](llvm|omp\.h|CLI|nlohmann)' --include='*.h' ir ops passes frontend | cut -d: -f1,2)
exit $bad
