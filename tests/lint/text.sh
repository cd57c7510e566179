#!/usr/bin/env bash
# The tree holds no path of one machine, no unfinished marker and no data set.
set -euo pipefail
bad=0
if git grep -nE '(/root/|/home/[a-z]+/|/work/)' -- . ':!tests/lint/text.sh'; then
  echo "^ a path of one machine"; bad=1
fi
if git grep -nE '\b(TODO|FIXME|XXX)\b' -- '*.cpp' '*.h' '*.py' '*.sh' 'scripts/*' ':!tests/lint/text.sh'; then
  echo "^ an unfinished marker"; bad=1
fi
while read -r file; do
  size=$(stat -c %s "$file")
  if [ "$size" -gt 400000 ]; then echo "$file: $size bytes is too large for the tree"; bad=1; fi
done < <(git ls-files)
exit $bad
