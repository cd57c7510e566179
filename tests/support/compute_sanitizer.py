#!/usr/bin/env python3
"""Stands for NVIDIA's compute-sanitizer: runs a program, and says what the real one would of it.

compute-sanitizer --tool memcheck|racecheck --OPTION VALUE ... PROGRAM [ARGUMENT ...]. With
$SANITIZER_FINDS it has found one error more. It also says "0 errors" of what used no GPU: the real one
says that nothing could be attached to.
"""

import os
import subprocess
import sys

FOUND = {
    "memcheck": ["Invalid __global__ write of size 4 bytes", "    at k3+0x70", "    by thread (0,0,0) in block (0,0,0)"],
    "racecheck": ["Error: Race reported between Write access at k3+0x70", "    and Read access at k3+0x90 [4 hazards]"],
}
SUMMARY = {
    "memcheck": ("ERROR SUMMARY: 0 errors", "ERROR SUMMARY: 1 error"),
    "racecheck": ("RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)",
                  "RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)"),
}


def main():
    options, command = {}, sys.argv[1:]
    while command[0].startswith("--"):
        name, value, *command = command
        options[name] = value
    if unknown := set(options) - {"--tool", "--report-api-errors", "--error-exitcode", "--launch-timeout"}:
        sys.exit(f"unrecognised option '{unknown.pop()}'")
    tool, finds = options["--tool"], "SANITIZER_FINDS" in os.environ
    print("========= COMPUTE-SANITIZER", flush=True)
    code = subprocess.run(command).returncode
    if finds:
        print(*(f"========= {line}" for line in FOUND[tool]), sep="\n")
    if code:
        print(f"========= Target application returned an error: exit code {code}")
    print(f"========= {SUMMARY[tool][finds]}")
    return int(options["--error-exitcode"]) if finds else code


sys.exit(main())
