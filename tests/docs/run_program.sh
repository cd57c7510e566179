#!/usr/bin/env bash
# Runs a program of the documentation in a fresh folder: run_program.sh PROGRAM
set -euo pipefail
program=$(realpath "$1")
source "$(cd "$(dirname "$0")" && pwd)/workplace.sh"
timeout 60 "$program" < /dev/null
