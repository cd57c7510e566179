"""NVIDIA's compute-sanitizer: where it lies, what it is asked, and what it said.

memcheck sees the libraries' kernels too, as what Fluid hands them may be wrong. racecheck does not:
it takes how kernels of cuBLAS and cuDNN for newer GPUs wait for their copies for races. Calls of CUDA's
API that fail are nobody's fault: the libraries try what a GPU may lack, and what fails for Fluid fails
its tests.
"""

import glob
import os
import re
import shutil

from cuda_folders import nvidia_folders

OWN = "Group/GpuOps.*/0:Group/GpuOps.*/1:*RepeatsBitForBit/linear_regression"
OF_LIBRARIES = "GpuLibraryProducts.*:GpuLibraryConvolutions.WhatFollowsIsApplied:GpuLibraryOps.*"
TESTS = {"memcheck": f"{OWN}:{OF_LIBRARIES}", "racecheck": OWN}
FOUND_ERRORS = "9"  # the exit code then
NAME = "compute-sanitizer"
FOLDERS = ("/usr/local/cuda*/bin", "/usr/local/cuda*/compute-sanitizer", "/opt/nvidia/*/compute-sanitizer")
SUMMARY = re.compile(r"^========= ((?:ERROR|RACECHECK) SUMMARY: .*)", re.MULTILINE)
CLEAN = re.compile(r"ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards displayed")
COMPLAINT = re.compile(r"^========= (?!COMPUTE-SANITIZER|ERROR SUMMARY|RACECHECK SUMMARY)(\S.*)", re.MULTILINE)
PASSED = re.compile(r"^\[  PASSED  \] [1-9]", re.MULTILINE)


def program():
    """Its path, or None: pip's nvidia-cuda-sanitizer-api lies in nvidia/cu13/{bin,compute-sanitizer}."""
    folders = nvidia_folders("bin") + nvidia_folders(NAME)
    folders += [folder for pattern in FOLDERS for folder in sorted(glob.glob(pattern), reverse=True)]
    return shutil.which(NAME) or shutil.which(NAME, path=os.pathsep.join(folders))


def command(tool, check, test_program, tests):
    return [tool, "--tool", check, "--report-api-errors", "no", "--error-exitcode", FOUND_ERRORS, "--launch-timeout", "0",
            test_program, f"--gtest_filter={tests or TESTS[check]}"]


def verdict(done):
    """Whether the tests ran and passed, and the tool saw them and found nothing; and what it said."""
    summaries = SUMMARY.findall(done.text)
    good = done.good and bool(summaries) and all(map(CLEAN.match, summaries)) and bool(PASSED.search(done.text))
    said = summaries if good else [*COMPLAINT.findall(done.text)[:1], *(summaries or [done.last_line])]
    if done.good and not good and summaries and not PASSED.search(done.text):
        said.append("no test ran")
    return good, "; ".join(said)
