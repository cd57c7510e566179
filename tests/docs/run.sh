#!/usr/bin/env bash
# Runs the commands of a page of the documentation, in one shell in a fresh folder: run.sh PAGE.md BUILD_TREE.
# fluidrun and the examples are in the path. It stops at the first command that fails, and names its line; it lists
# the blocks that say "no-test". What a block is, blocks.awk says.
set -euo pipefail
exec 2>&1
tests=$(cd "$(dirname "$0")" && pwd)
page=$(realpath "$1")
build=$(realpath "$2")
name=$(basename "$page")
source "$tests/workplace.sh"
awk -v want=sh -v page="$name" -f "$tests/blocks.awk" "$page" > "$work/commands"
# The page's first line, its title, makes room for what comes before the commands.
{
  printf '%s; ' "page='$name'" \
    "trap '{ set +x; } 2> /dev/null; echo \"\$page:\$LINENO: failed: \$(sed -n \${LINENO}p \"\$0\")\"' ERR"
  echo "PS4='+ $name:\$LINENO: '; set -x"
  sed 1d "$work/commands"
} > "$work/$name.sh"
PATH=$build:$build/examples:$PATH bash -Eeu -o pipefail "$work/$name.sh" < /dev/null
