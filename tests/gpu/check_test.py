"""What check.py does where programs fail, hang or die, and where time is short: python check_test.py

Programs of a few lines stand for Fluid's.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "../..")
# A test program whose test "Bad" breaks the process's context: what follows fails. "Dies" ends it, and
# "Hangs" never ends.
TEST_GPU = """#!{python}
import os, sys, time
tests = {tests}
chosen = next(a.split("=", 1)[1] for a in sys.argv if a.startswith("--gtest_filter="))
chosen = [t for s in tests for t in tests[s] if chosen == "*" or s + t in chosen.split(":")]
if "--gtest_list_tests" in sys.argv:
    for suite in tests:
        print(suite, *(f"  {{t}}  # GetParam() = 1" for t in tests[suite]), sep="\\n")
    sys.exit()
broken = False
for suite in tests:
    for test in tests[suite]:
        if test not in chosen:
            continue
        print(f"[ RUN      ] {{suite}}{{test}}", flush=True)
        if test == "Dies": os.abort()
        if test == "Hangs": time.sleep(600)
        broken |= test == "Bad"
        print(f"[  FAILED  ] {{suite}}{{test}} (1 ms)" if broken else f"[       OK ] {{suite}}{{test}} (1 ms)", flush=True)
print(f"[  PASSED  ] {{0 if broken else len(chosen)}} tests.")
if broken: print(" 1 FAILED TEST")
sys.exit(broken)
"""
FLUIDRUN = """#!{python}
import sys
print("a driver's warning", file=sys.stderr)
print('{{"cpu": 1}}' if "--json" in sys.argv else "cuda:0  a GPU")
"""


class Check(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build, self.out = folder.name, os.path.join(folder.name, "out")

    def program(self, name, text, **given):
        path = os.path.join(self.build, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.format(python=sys.executable, **given))
        os.chmod(path, 0o755)

    def check(self, *arguments, **settings):
        return subprocess.run([sys.executable, os.path.join(HERE, "check.py"), "--build", self.build, "--out", self.out,
                               *arguments], capture_output=True, text=True, timeout=120, env=os.environ | settings)

    def read(self, name):
        with open(os.path.join(self.out, name), encoding="utf-8") as f:
            return f.read()

    def test_what_follows_a_broken_context_runs_in_a_fresh_process(self):
        self.program("test_gpu", TEST_GPU, tests={"A.": ["One", "Bad", "Two", "Dies", "Three"], "B.": ["Four"]})
        done = self.check("--stages", "gpu_tests")
        self.assertEqual(done.returncode, 1, done.stderr)
        results = json.loads(self.read("gpu_tests.json"))
        self.assertEqual(results, {"A.": {"A.One": "ok", "A.Bad": "failed", "A.Two": "ok",
                                          "A.Dies": "the process ended with -6", "A.Three": "ok"},
                                   "B.": {"B.Four": "ok"}})
        self.assertIn("FAIL A: 3 ok, Bad (failed), Dies (the process ended with -6)\nok   B: 1 ok\n", done.stdout)

    def test_one_filter_chooses_tests(self):
        self.program("test_gpu", TEST_GPU, tests={"B.": ["Four"]})
        self.assertEqual(self.check("--stages", "gpu_tests", "--filter", "B.Four").returncode, 0)

    def test_the_deadline_keeps_what_was_done_and_lists_the_rest(self):
        self.program("test_gpu", TEST_GPU, tests={"A.": ["One", "Hangs", "Two"], "B.": ["Four"]})
        self.program("fluidrun", FLUIDRUN)
        begin = time.monotonic()
        done = self.check("--stages", "devices,gpu_tests,programs", "--programs", "mnist_fluid", "--deadline", "5")
        self.assertLess(time.monotonic() - begin, 30)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(json.loads(self.read("gpu_tests.json"))["A."], {"A.One": "ok"})
        self.assertEqual(json.loads(self.read("summary.json"))["not_done"],
                         ["gpu_tests A.", "gpu_tests B.", "programs"])
        self.assertIn("ok   A: 1 ok, 2 not done", done.stdout)
        self.assertIn("[       OK ] A.One", self.read("gpu_tests.log"))
        with tarfile.open(self.out + ".tar.gz") as tar:
            self.assertIn("out/gpu_tests.log", tar.getnames())

    def test_a_log_grows_while_its_stage_runs(self):
        self.program("test_gpu", TEST_GPU, tests={"A.": ["One", "Hangs"]})
        process = subprocess.Popen([sys.executable, os.path.join(HERE, "check.py"), "--build", self.build, "--out", self.out,
                                    "--stages", "gpu_tests"], stdout=subprocess.PIPE, text=True)
        log = os.path.join(self.out, "gpu_tests.log")
        for _ in range(200):
            if os.path.exists(log) and "] A.Hangs" in self.read("gpu_tests.log"):
                break
            time.sleep(0.1)
        self.assertIn("[       OK ] A.One", self.read("gpu_tests.log"))
        process.terminate()
        said, _ = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 2, said)
        self.assertIn("NOT DONE gpu_tests A.", said)

    def test_a_description_holds_no_warnings(self):
        self.program("fluidrun", FLUIDRUN)
        self.assertEqual(self.check("--stages", "devices").returncode, 0)
        self.assertEqual(json.loads(self.read("devices.json")), {"cpu": 1})
        self.assertIn("a driver's warning", self.read("devices.log"))

    def test_a_bundle_says_what_glibc_it_needs(self):
        with open(os.path.join(ROOT, "scripts/bundle"), encoding="utf-8") as f:
            packed = re.findall(r"tests/(gpu|bench)/\{([\w,]+)\}\.py", f.read())
        self.assertEqual([folder for folder, _ in packed], ["gpu", "bench"])
        for folder, names in packed:
            for name in names.split(","):
                shutil.copy(os.path.join(ROOT, "tests", folder, name + ".py"), self.build)
        self.program("fluidrun", FLUIDRUN)
        for version, code in (("2.5", 0), ("9.36", 1)):
            with open(os.path.join(self.build, "glibc_version"), "w", encoding="utf-8") as f:
                f.write(version)
            done = subprocess.run([sys.executable, os.path.join(self.build, "check.py"), "--stages", "devices",
                                   "--out", self.out], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertIn("FAIL glibc: the programs need glibc 9.36 or newer, and this machine has glibc ", done.stdout)

    def sanitize(self, tests, *arguments, **settings):
        self.program("test_gpu", TEST_GPU, tests=tests)
        folder = os.path.join(self.build, "bin")
        os.makedirs(folder, exist_ok=True)
        tool = os.path.join(folder, "compute-sanitizer")
        if not os.path.exists(tool):
            os.symlink(os.path.join(ROOT, "tests/support/compute_sanitizer.py"), tool)
        done = self.check("--stages", "sanitizer", *arguments, PATH=folder + os.pathsep + os.environ["PATH"], **settings)
        return done.returncode, done.stdout

    def test_the_sanitizer_is_believed_where_tests_ran_and_it_found_nothing(self):
        self.assertEqual(self.sanitize({"B.": ["Four"]}, "--filter", "B.Four"),
                         (0, "ok   memcheck: ERROR SUMMARY: 0 errors\n"
                             "ok   racecheck: RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"))
        self.assertEqual(self.sanitize({"B.": ["Four"]}, "--filter", "B.Four", SANITIZER_FINDS="1"),
                         (1, "FAIL memcheck: Invalid __global__ write of size 4 bytes; ERROR SUMMARY: 1 error\n"
                             "FAIL racecheck: Error: Race reported between Write access at k3+0x70; "
                             "RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n"))
        code, said = self.sanitize({"B.": ["Bad"]}, "--filter", "B.Bad")
        self.assertEqual(code, 1)
        self.assertIn("FAIL memcheck: Target application returned an error: exit code 1; ERROR SUMMARY: 0 errors\n", said)
        code, said = self.sanitize({"B.": ["Four"]}, "--filter", "B.Five")
        self.assertEqual(code, 1)
        self.assertIn("FAIL memcheck: ERROR SUMMARY: 0 errors; no test ran\n", said)

    def test_libraries_kernels_are_checked_for_their_memory_alone(self):
        self.assertEqual(self.sanitize({"GpuLibraryProducts.": ["One"], "Group/GpuOps.": ["K/0"]})[0], 1)
        commands = [line for line in self.read("sanitizer.log").splitlines() if line.startswith("$")]
        self.assertEqual([("GpuLibrary" in line, "racecheck" in line) for line in commands],
                         [(True, False), (False, True)])

    def test_what_is_not_there_is_named(self):
        for option, named in (("--stages", "trajectories"), ("--programs", "mnist_fluid"), ("--networks", "resnet18"),
                              ("--works", "matmul")):
            done = self.check(option, "none,of_these")
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"{option}: no none, of_these; there are ", done.stderr)
            self.assertIn(named, done.stderr)

    def test_output_that_is_no_text_is_kept(self):
        self.program("fluidrun", "#!/bin/sh\nprintf 'cuda:0 \\377\\n'\n")
        self.assertEqual(self.check("--stages", "devices").returncode, 0)


class Trajectories(unittest.TestCase):
    def test_a_run_may_leave_f64_as_far_as_the_cpu_does_some_times_over(self):
        from trajectories import FACTOR, farthest
        exact, cpu = [1.0, 1.0, 1.0], [1.0, 1.001, 1.0]
        near = [1.0, 1.0, 1 + 0.9 * FACTOR * 0.001]
        self.assertLess(farthest(near, cpu, exact, 1e-5)[0], 1)
        self.assertEqual(farthest([1.0001, 1.0, 1.0], cpu, exact, 1e-5)[1], 0)
        for wrong in ([1.0, 1.0, 1 + 1.1 * FACTOR * 0.001], [1.0, 1.0], [1.0, float("nan"), 1.0]):
            self.assertGreater(farthest(wrong, cpu, exact, 1e-5)[0], 1)


if __name__ == "__main__":
    unittest.main()
