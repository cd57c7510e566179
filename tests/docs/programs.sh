#!/usr/bin/env bash
# Writes each whole program of a page as FOLDER/docs_<page>_<n>.cpp and prints its name: programs.sh PAGE.md FOLDER.
# A file that stays the same is left alone, so that it is not compiled again.
set -euo pipefail
page=$1 folder=$2
name=$(basename "$page" .md)
mkdir -p "$folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk -v want=cpp -v page="$name.md" -f "$(dirname "$0")/blocks.awk" "$page" > "$work/all"
awk -v stem="$work/docs_${name,,}_" '/^#line / { ++n } { print > (stem n ".cpp") }' "$work/all"
for program in "$work"/docs_*.cpp; do
  [ -e "$program" ] || continue
  file=$(basename "$program")
  cmp -s "$program" "$folder/$file" || cp "$program" "$folder/$file"
  basename "$file" .cpp
done
