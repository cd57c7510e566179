"""Writes JSON files atomically."""

import json
import os


def write_json(value, path):
    with open(path + ".temporary", "w", encoding="utf-8") as f:
        json.dump(value, f, indent=1)
    os.replace(path + ".temporary", path)
