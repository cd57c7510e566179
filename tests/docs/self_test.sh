#!/usr/bin/env bash
# The tests of documentation fail where they should, and name the line: self_test.sh
set -euo pipefail
tests=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# page LINE...: writes it below a title, with three quotes for a fence
page() { { echo "# Title"; printf '%s\n' "$@"; } | sed "s/^'''/\`\`\`/" > page.md; }
# fails MESSAGE COMMAND...
fails() {
  local message=$1
  shift
  if "$@" > said 2>&1; then echo "this should fail, with: $message"; exit 1; fi
  grep -qxF -- "$message" said || { echo "no such line: $message"; cat said; exit 1; }
}
run() { bash "$tests/run.sh" page.md "$work"; }
programs() { bash "$tests/programs.sh" page.md "$work/out"; }

page "'''sh" 'echo one > file' "'''" 'Text.' "'''sh" 'cat file' 'cat none 2> /dev/null' 'touch after' "'''"
fails 'page.md:8: failed: cat none 2> /dev/null' run
page "'''sh" 'false | true' "'''"
fails 'page.md:3: failed: false | true' run
page "'''"
fails "page.md:2: a fence without an info string: use text for what a program prints" run
page "'''sh no-test" "'''"
fails 'page.md:2: after sh only "no-test: REASON" may follow' run
page "'''bash" "'''"
fails 'page.md:2: commands are in blocks of sh' run
page "'''cpp" 'int x;' "'''"
fails 'page.md:4: no main() above: a fragment has the info string cpp fragment' programs
page "'''sh"
fails 'page.md:2: a block does not end' run

page "'''sh no-test: needs the moon" 'false' "'''" "'''sh" 'test -d $MNIST -a -d $CIFAR10' "'''" \
  "'''cpp fragment" 'int x;' "'''" "'''cpp" 'int main() {}' "'''" "'''text" 'false' "'''"
run > said
grep -qxF 'page.md:2: not run, needs the moon' said
test "$(programs)" = docs_page_1
printf '%s\n' '#line 12 "page.md"' 'int main() {}' | cmp - out/docs_page_1.cpp || { cat out/docs_page_1.cpp; exit 1; }
