"""What gpu_bench.py does where a side fails: python gpu_bench_test.py

A script stands for fluid_bench, and another one, given as the Python of PyTorch, for its side.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SIDE = """#!{python}
import json, os, sys
work, mode = ({given})
settings = os.environ.get("LD_LIBRARY_PATH", "")
with open({started!r}, "a") as f:
    print(work, mode, settings, file=f)
if (work, mode) == ("matmul", "eager"): sys.exit(3)
print("a warning of a library")
print(json.dumps({{"ready": work, "first_s": 0.5, "{memory}": 8, {figures}}}), flush=True)
for line in sys.stdin:
    if (work, mode) == ("matmul", "compile"): os.abort()
    print(json.dumps({{"ms": {ms}}}), flush=True)
"""


class GpuBench(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.out = folder.name, os.path.join(folder.name, "bench.json")
        self.started = os.path.join(folder.name, "started")
        self.side("fluid_bench", "sys.argv[1], 'fluid'", "arena_bytes", '"arithmetic_ms": 0.25, "memory_ms": 0.5,', 1.0)
        self.side("python", "sys.argv[2], sys.argv[3]", "peak_bytes", "", 2.0)

    def side(self, name, given, memory, figures, ms):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(SIDE.format(python=sys.executable, given=given, started=self.started, memory=memory,
                                figures=figures, ms=ms))
        os.chmod(path, 0o755)

    def bench(self, *works):
        return subprocess.run([sys.executable, os.path.join(HERE, "gpu_bench.py"), self.folder,
                               os.path.join(self.folder, "python"), "--rounds", "2", "--only", ",".join(works),
                               "--out", self.out], capture_output=True, text=True, timeout=120)

    def works(self):
        with open(self.out, encoding="utf-8") as f:
            return json.load(f)["works"]

    def test_what_dies_is_recorded_and_the_rest_goes_on(self):
        done = self.bench("matmul", "alexnet")
        self.assertEqual(done.returncode, 1)
        self.assertIn("missed: matmul (eager)", done.stderr)
        works = self.works()
        self.assertEqual(works["matmul"]["failures"], ["torch-eager-nchw ended with 3", "torch-compile-nchw ended with -6"])
        self.assertEqual(list(works["matmul"]["rows"]), ["fluid"])
        self.assertEqual(works["alexnet"]["ratios"], {"eager": 0.5, "compiled": 0.5, "memory": 1.0})
        self.assertIn("| AlexNet, batch 64 x 3 x 227 x 227, AdamW | 1.000 | 2.000 | 2.000 | 0.50 | 0.50 | 1.00 "
                      "| 0.50 / 0.50 / 0.50 | 25 | 50 |", done.stdout)

    def test_works_are_added_to_those_of_the_file(self):
        self.assertEqual(self.bench("seed_cnn").returncode, 1, "its memory is not 0.8 of PyTorch's")
        self.assertEqual(self.bench("alexnet_tf32").returncode, 0)
        self.assertEqual(list(self.works()), ["seed_cnn", "alexnet_tf32"])

    def test_folders_of_cuda_are_for_fluid_alone(self):
        packages = os.path.join(self.folder, "packages")
        os.makedirs(os.path.join(packages, "nvidia", "cu13", "lib"))
        os.environ["PYTHONPATH"] = packages
        self.addCleanup(os.environ.pop, "PYTHONPATH")
        self.bench("alexnet")
        with open(self.started, encoding="utf-8") as f:
            started = f.read().splitlines()
        self.assertEqual([("cu13" in line) for line in started], ["fluid" in line.split() for line in started])
        self.assertEqual(len(started), 5)


if __name__ == "__main__":
    unittest.main()
