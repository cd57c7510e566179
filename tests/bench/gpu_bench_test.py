"""Tests gpu_bench.py when a side fails: python gpu_bench_test.py

One script replaces fluid_bench. Another one replaces the Python that runs PyTorch.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import gpu_bench
import gpu_results

HERE = os.path.dirname(os.path.abspath(__file__))
SIDE = """#!{python}
import json, os, sys, time
work, mode = ({given})
settings = os.environ.get("LD_LIBRARY_PATH", "") + os.environ.get("TRITON_CACHE_DIR", "")
with open({started!r}, "a") as f:
    print(work, mode, settings, file=f)
if (work, mode) == ("matmul", "eager"): sys.exit(3)
if work == "alexnet_f16" and sys.argv[3:5] == ["compile", "nhwc"]: sys.exit(4)
if (work, mode) == ("seed_cnn_tf32", "compile"): time.sleep(600)
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
        self.side_text(name, SIDE.format(python=sys.executable, given=given, started=self.started, memory=memory,
                                         figures=figures, ms=ms))

    def side_text(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, 0o755)

    def bench(self, *works, deadline=60, options=()):
        return subprocess.run([sys.executable, os.path.join(HERE, "gpu_bench.py"), self.folder,
                               os.path.join(self.folder, "python"), "--rounds", "2", "--only", ",".join(works),
                               "--deadline", str(deadline), "--out", self.out, *options],
                              capture_output=True, text=True, timeout=120)

    def works(self):
        with open(self.out, encoding="utf-8") as f:
            return json.load(f)["works"]

    def test_what_dies_is_recorded_and_the_rest_goes_on(self):
        done = self.bench("matmul", "alexnet")
        self.assertEqual(done.returncode, gpu_bench.MISSED)
        self.assertIn("missed: matmul (eager)", done.stderr)
        works = self.works()
        self.assertEqual(works["matmul"]["failures"], ["torch-eager-nchw ended with 3", "torch-compile-nchw ended with -6"])
        self.assertEqual(list(works["matmul"]["rows"]), ["fluid"])
        self.assertEqual(works["alexnet"]["comparison"],
                         {"eager": {"ratio": 0.5, "at_most": None, "met": None},
                          "compiled": {"ratio": 0.5, "at_most": 0.95, "met": True},
                          "memory": {"ratio": 1.0, "at_most": 1.0, "met": True}})
        self.assertIn("| AlexNet, batch 64 x 3 x 227 x 227, AdamW | 1.000 | 2.000 | 2.000 | 0.50 | 0.50 (<= 0.95) "
                      "| 1.00 (<= 1.0) | 0.50 / 0.50 / 0.50 | 25 | 50 | met |", done.stdout)
        self.assertIn("| missed: eager |", done.stdout)

    def test_caches_of_compiled_sides_are_filled_first(self):
        caches = ["--peer-caches", os.path.join(self.folder, "caches")]
        self.assertEqual(self.bench("matmul", options=["--prime"]).stderr, "gpu_bench.py: --prime needs --peer-caches\n")
        done = self.bench("linear_regression", "alexnet", options=[*caches, "--prime"])
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        with open(self.started, encoding="utf-8") as f:
            sides = sorted(f.read().splitlines())
        self.assertEqual(sides, [f"{work} compile {caches[1]}/{work}/torch-compile-{layout}-triton" for work, layout in
                                 (("alexnet", "nchw"), ("alexnet", "nhwc"), ("linear_regression", "nchw"))])
        self.assertEqual(self.bench("linear_regression", options=caches).returncode, gpu_bench.MISSED)
        self.assertEqual(self.works()["linear_regression"]["caches_of_torch_compile"], "filled before")
        with open(self.started, encoding="utf-8") as f:
            self.assertIn(f"linear_regression compile {caches[1]}/linear_regression/torch-compile-nchw-triton\n", f)

    def test_a_layout_that_fails_may_have_been_the_better_one(self):
        done = self.bench("alexnet_f16")
        self.assertEqual(done.returncode, gpu_bench.LEFT_OUT)
        self.assertIn("not done: alexnet_f16 (torch-compile-nhwc)\n", done.stderr)
        self.assertIn("| not known |", done.stdout)
        work = self.works()["alexnet_f16"]
        self.assertEqual({name: figure["met"] for name, figure in work["comparison"].items()},
                         {"eager": None, "compiled": None, "memory": None})
        self.assertEqual(work["failures"], ["torch-compile-nhwc ended with 4"])

    def test_what_the_deadline_cuts_off_is_neither_met_nor_missed(self):
        done = self.bench("alexnet_tf32", "seed_cnn_tf32", "alexnet_bf16", deadline=16)
        self.assertEqual(done.returncode, gpu_bench.MISSED, "the memory of seed_cnn_tf32 is more than it may be, whatever is left out")
        works = self.works()
        self.assertEqual(list(works), ["alexnet_tf32", "seed_cnn_tf32"])
        cut = works["seed_cnn_tf32"]
        self.assertEqual(cut["left_out"], ["torch-compile-nchw", "torch-compile-nhwc"])
        self.assertEqual({name: figure["met"] for name, figure in cut["comparison"].items()},
                         {"eager": False, "compiled": None, "memory": False})
        self.assertIn("not done: seed_cnn_tf32 (torch-compile-nchw), seed_cnn_tf32 (torch-compile-nhwc), alexnet_bf16\n",
                      done.stderr)
        self.assertEqual(self.bench("alexnet", deadline=1).returncode, gpu_bench.LEFT_OUT)

    def test_a_work_that_breaks_is_named_and_the_rest_goes_on(self):
        self.side("fluid_bench", "sys.argv[1], 'fluid'", "arena", "", 1.0)
        done = self.bench("seed_cnn", "matmul")
        self.assertEqual(done.returncode, 1)
        self.assertIn("KeyError: 'arena_bytes'", done.stderr)
        self.assertIn("\nbroke: seed_cnn, matmul\n", done.stderr)
        os.remove(os.path.join(self.folder, "fluid_bench"))
        self.assertEqual(self.bench("alexnet").returncode, gpu_bench.MISSED)
        self.assertIn("No such file or directory", self.works()["alexnet"]["failures"][0])

    def test_a_figure_is_known_where_no_peer_that_is_left_out_could_change_it(self):
        rows = {"fluid": {"ms": 1.0, "arena_bytes": 8}, "torch-eager-nchw": {"ms": 2.0, "peak_bytes": 8}}
        met = lambda limit, left_out: gpu_results.comparison("eager", limit, rows, left_out)["met"]
        self.assertEqual([met(0.5, []), met(0.4, [])], [True, False])
        self.assertEqual([met(0.5, ["torch-eager-nhwc"]), met(0.4, ["torch-eager-nhwc"])], [None, False])
        self.assertEqual(met(0.5, ["torch-compile-nhwc"]), True)
        dies = lambda name, limit: gpu_results.comparison(name, limit, rows, [], ["torch-eager-nhwc"])["met"]
        self.assertEqual([dies("eager", 0.5), dies("eager", 0.4), dies("memory", 1.0)], [None, False, None])
        self.assertIs(gpu_results.comparison("eager", 0.5, rows, [], ["torch-compile-nhwc"])["met"], True)
        self.assertIsNone(gpu_results.comparison("compiled", 0.5, rows, ["torch-compile-nhwc"])["met"])
        self.assertIs(gpu_results.comparison("compiled", 0.5, rows, [])["met"], False)

    def test_versions_are_beside_what_was_measured(self):
        self.side_text("fluidrun", """#!/bin/sh\necho '{"machine": {"versions": {"cuDNN": "9.1.0"}}}'\n""")
        self.bench("alexnet")
        self.assertEqual(self.works()["alexnet"]["versions"], {"cuDNN": "9.1.0"})

    def test_files_of_several_runs_are_one_table(self):
        self.bench("alexnet")
        first, self.out = self.out, self.out + "2"
        self.bench("seed_cnn")
        both = self.out + "3"
        done = subprocess.run([sys.executable, os.path.join(HERE, "gpu_results.py"), first, self.out, "--out", both],
                              capture_output=True, text=True, check=True)
        self.assertIn("| missed: eager, memory |", done.stdout)
        self.out = both
        self.assertEqual(list(self.works()), ["alexnet", "seed_cnn"])

    def test_every_work_has_the_targets_that_were_set(self):
        small, large = (0.3, 0.7, 0.8), (None, 0.95)
        expected = {"matmul": (1.05, None, None), "linear_regression": small, "seed_cnn": small, "fluid_mnist": small,
                    "alexnet": (*large, 1.0), "alexnet_bf16": (*large, 1.0), "alexnet_f16": (*large, 1.0),
                    "resnet18_b64_bf16": (*large, 0.8)}
        expected |= {name + "_tf32": limits for name, limits in expected.items() if "16" not in name}
        self.assertEqual({name: tuple(limits) for name, (_, *limits) in gpu_bench.WORKS.items()}, expected)

    def test_works_are_added_to_those_of_the_file(self):
        self.assertEqual(self.bench("seed_cnn").returncode, gpu_bench.MISSED, "its memory is not 0.8 of PyTorch's")
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
