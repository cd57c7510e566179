#!/usr/bin/env bash
# Runs a program of the documentation in a fresh folder: run_program.sh PROGRAM [LAUNCHER WORD...]. With a launcher,
# "LAUNCHER WORD... PROGRAM" runs.
set -euo pipefail
program=$(realpath "$1")
launcher=("${@:2}")
if [ ${#launcher[@]} -gt 0 ]; then launcher[0]=$(realpath "${launcher[0]}"); fi
source "$(cd "$(dirname "$0")" && pwd)/workplace.sh"
timeout 60 "${launcher[@]}" "$program" < /dev/null
