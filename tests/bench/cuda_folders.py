"""Finds the CUDA libraries that pip installs."""

import glob
import os
import site
import sys


def nvidia_folders(name):
    """The folders nvidia/*/NAME of this Python's packages, those of CUDA 13 first."""
    packages = dict.fromkeys([*sys.path, *site.getsitepackages(), site.getusersitepackages()])
    folders = [folder for p in packages if p for folder in glob.glob(os.path.join(p, "nvidia", "*", name))]
    return sorted(folders, key=lambda folder: "/cu13/" not in folder)


def cuda_folders():
    """Returns the library folders. nvidia-cublas and nvidia-nvjitlink install to nvidia/cu13/lib,
    nvidia-cudnn-cu13 and nvidia-nccl-cu13 to nvidia/{cudnn,nccl}/lib."""
    return nvidia_folders("lib")


def with_cuda(environment):
    """Returns the LD_LIBRARY_PATH for a program that loads libfluid_cuda.so. PyTorch needs no such setting."""
    known = environment.get("LD_LIBRARY_PATH", "").split(":")
    return {"LD_LIBRARY_PATH": ":".join(filter(None, [*cuda_folders(), *known]))}
