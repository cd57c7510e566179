"""Tests kernels.py on made-up profiles, and the command line of bench.py: python kernels_test.py"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import kernels

HERE = os.path.dirname(os.path.abspath(__file__))


def call(kind, ms, megabytes, kernel="generated", layout="nhwc"):
    return {"kernel": kernel, "kind": kind, "layout": layout, "dtype": "f32", "role": "forward", "layer": "conv0",
            "ops": "add, relu", "bytes": megabytes * 1e6, "ms": ms}


def profile(*calls):
    return {"step_ms": 100, "steps": 3, "arena_bytes": 5e8, "threads": 2, "level": "memory", "copy_gbs": 20,
            "calls": list(calls)}


class Kernels(unittest.TestCase):
    def test_sums_the_bytes_of_generated_kernels(self):
        result = kernels.summary(profile(call("map", 10, 160), call("map", 30, 320), call("sum", 10, 40),
                                         call("gather", 10, 1e6), call("", 40, 1, kernel="onednn.conv2d")))
        self.assertAlmostEqual(result["share"], 0.6)
        self.assertAlmostEqual(result["fraction"], 520 / 50 / 20)
        self.assertEqual([(row["kind"], row["calls"]) for row in result["table"]], [("map", 2), ("sum", 1)])
        self.assertAlmostEqual(result["table"][0]["fraction"], 0.6)

    def test_lists_slow_kernels_of_more_than_a_hundredth(self):
        result = kernels.summary(profile(call("sum", 2, 15), call("map", 2, 17), call("max_pool2d", 0.9, 1)))
        self.assertEqual([slow["kind"] for slow in result["slow"]], ["sum"])
        self.assertAlmostEqual(result["slow"][0]["fraction"], 0.375)
        self.assertEqual(kernels.misses("net", result),
                         ["kernels of net: 0.34 of a copy", "sum kernel of net in conv0"])

    def test_misses_nothing_without_generated_kernels(self):
        self.assertEqual(kernels.misses("net", kernels.summary(profile())), [])

    def test_fails_only_when_asked(self):
        with tempfile.TemporaryDirectory() as build:
            outputs = {"fluid_bench": profile(call("sum", 50, 1)), "fluidrun": {"gops": {}, "gbs": {}}}
            for name, output in outputs.items():
                path = os.path.join(build, name)
                with open(path, "w") as f:
                    f.write(f"#!{sys.executable}\nprint('''{json.dumps(output)}''')\n")
                os.chmod(path, 0o755)
            out = os.path.join(build, "results.json")
            command = [sys.executable, os.path.join(HERE, "bench.py"), build, sys.executable, "--only", "kernels",
                       "--networks", "resnet18", "--out", out]
            for check in ([], ["--check"]):
                run = subprocess.run(command + check, capture_output=True, text=True)
                self.assertEqual(run.returncode, len(check), run.stderr)
                self.assertIn("| sum | nhwc | f32 | 1 | 50.000 | 0.00 |", run.stdout)
            self.assertIn("missed: kernels of resnet18: 0.00 of a copy, sum kernel of resnet18 in conv0", run.stderr)
            with open(out) as f:
                self.assertEqual(json.load(f)["kernels"]["resnet18"]["table"][0]["kind"], "sum")


if __name__ == "__main__":
    unittest.main()
