"""What check.py does where programs fail, hang or die, and where time is short: python check_test.py

Programs of a few lines stand for Fluid's.
"""

import ast
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

import gtest_runs
import processes

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "../..")
# A test program whose test "Bad" breaks the process's context: what follows fails. "Dies" ends it,
# "Hangs" never ends, "Skips" skips for the reason that is given, and after "Leaves" tearing down fails.
TEST_GPU = """#!{python} -IS
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
        if test == "Skips":
            print("gpu_test.h:20: Skipped", "{skips}", "", f"[  SKIPPED ] {{suite}}{{test}} (0 ms)", sep="\\n", flush=True)
            continue
        broken |= test == "Bad"
        print(f"[  FAILED  ] {{suite}}{{test}} (1 ms)" if broken else f"[       OK ] {{suite}}{{test}} (1 ms)", flush=True)
print(f"[  PASSED  ] {{0 if broken else len(chosen)}} tests.")
if broken: print(" 1 FAILED TEST")
if any(t.endswith("Leaves") for t in chosen):
    print("[  FAILED  ] A: SetUpTestSuite or TearDownTestSuite", flush=True)
    os.abort()
sys.exit(broken)
"""
FLUIDRUN = """#!{python} -IS
import sys
print("a driver's warning", file=sys.stderr)
print('{{"machine": {{"gpus": [{gpus}]}}}}' if "--json" in sys.argv else "cuda:0  a GPU")
"""
# Trains for 10 steps an epoch, with those losses on each place, repeated. Its memory follows from flags.
TRAINS = """#!{python} -IS
import json, sys
command, nan = sys.argv[1:], float("nan")
options = {{name: value for name, value in zip(command, command[1:]) if name.startswith("--")}}
arena = sum(map(ord, "".join(options.get(f, "") for f in ("--batch", "--dtype", "--amp", "--amp-dtype"))))
if command[0] == "devices":
    print("a description")
    sys.exit()
if command[0] == "plan":
    with open(options["--target"]) as target:
        assert target.read() == "a description\\n"
    print(json.dumps({{"arena_bytes": arena + {more}}}))
    sys.exit()
losses = {losses}[options["--place"]]
if "--save" in options:
    with open(options["--save"], "w") as file:
        print({saves}, file=file)
steps = min(int(options["--max-steps"]), 10 * int(options.get("--epochs", 1)))
with open(options["--log-json"], "w") as log:
    for i in range(steps if losses else 0):
        print(json.dumps({{"loss": losses[i % len(losses)]}}), file=log)
print("cudnn.conv2d cannot compute that: code is generated")
print(f"memory of cuda:0: arena 1 KiB ({{arena}} bytes); outside it nothing of 1 MiB")
"""


class CheckCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build, self.out = folder.name, os.path.join(folder.name, "out")

    def program(self, name, text, gpus='{"name": "a GPU"}', skips="", more=0, saves="1", **given):
        path = os.path.join(self.build, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.format(python=sys.executable, gpus=gpus, skips=skips, more=more, saves=saves, **given))
        os.chmod(path, 0o755)

    def check(self, *arguments, **settings):
        return subprocess.run([sys.executable, os.path.join(HERE, "check.py"), "--build", self.build, "--out", self.out,
                               *arguments], capture_output=True, text=True, timeout=120, env=os.environ | settings)

    def read(self, name):
        with open(os.path.join(self.out, name), encoding="utf-8") as f:
            return f.read()


class Check(CheckCase):
    def test_what_follows_a_broken_context_runs_in_a_fresh_process(self):
        self.program("test_gpu", TEST_GPU, tests={"A.": ["One", "Bad", "Two", "Dies", "Three"], "B.": ["Four"]})
        done = self.check("--stages", "gpu_tests")
        self.assertEqual(done.returncode, 1, done.stderr)
        results = json.loads(self.read("gpu_tests.json"))
        self.assertEqual(results, {"A.": {"A.One": "ok", "A.Bad": "failed", "A.Two": "ok",
                                          "A.Dies": "the process ended with -6", "A.Three": "ok"},
                                   "B.": {"B.Four": "ok"}})
        self.assertIn("FAIL A: 3 ok, Bad (failed), Dies (the process ended with -6)\nok   B: 1 ok\n", done.stdout)

    def test_a_process_that_fails_after_its_tests_is_a_failure(self):
        self.program("test_gpu", TEST_GPU, tests={"A.": ["One", "Leaves"], "B.": ["Four"]})
        done = self.check("--stages", "gpu_tests")
        self.assertEqual((done.returncode, done.stdout),
                         (1, "FAIL A: 2 ok, end of its tests (the process ended with -6)\nok   B: 1 ok\n"))

    def test_several_processes_run_the_parts_of_a_suite(self):
        self.program("test_gpu", TEST_GPU, tests={"GpuMemoryUse.": ["Zero"], "A.": ["One", "Bad", "Two", "Dies", "Three"]})
        done = self.check("--stages", "gpu_tests", "--jobs", "3")
        self.assertEqual((done.returncode, done.stdout.splitlines()),
                         (1, ["FAIL A: 3 ok, Bad (failed), Dies (the process ended with -6)", "ok   GpuMemoryUse: 1 ok"]))
        figures = gtest_runs.Part("A.", [], 2).figures(0)
        self.assertEqual(figures, "A.2.0.json")

    def test_one_filter_chooses_tests(self):
        self.program("test_gpu", TEST_GPU, tests={"B.": ["Four"]})
        self.assertEqual(self.check("--stages", "gpu_tests", "--filter", "B.Four").returncode, 0)

    def test_a_suite_is_good_where_something_ran_and_nothing_was_skipped_for_want_of_a_gpu(self):
        nothing, on_host = "no GPU: no driver", "a host's memory is not this process's alone"
        for tests, skips, said in ((["Skips"], nothing, "FAIL A: 1 skipped: no GPU: no driver\n"),
                                   (["One", "Skips"], nothing, "FAIL A: 1 ok, 1 skipped: no GPU: no driver\n"),
                                   (["Skips"], on_host, f"FAIL A: 1 skipped: {on_host}\n"),
                                   (["One", "Skips"], on_host, f"ok   A: 1 ok, 1 skipped: {on_host}\n")):
            self.program("test_gpu", TEST_GPU, tests={"A.": tests}, skips=skips)
            done = self.check("--stages", "gpu_tests")
            self.assertEqual((done.returncode, done.stdout), (int(said.startswith("FAIL")), said))

    def test_what_breaks_a_check_ends_that_alone(self):
        self.program("test_gpu", TEST_GPU, tests={"B.": ["Four"]})
        self.program("fluidrun", TRAINS.replace('{{"loss"', '{{"none"'), losses={"cpu": [1.0], "cuda:0": [1.0]})
        packed = os.path.join(self.build, "new", "folder", "1.tar.gz")
        done = self.check("--stages", "devices,programs,gpu_tests", "--programs", "mnist_fluid,mnist_cnn", "--pack", packed)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stdout.splitlines(), ["FAIL devices: JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
                          "FAIL programs mnist_fluid: KeyError: 'loss'", "FAIL programs mnist_cnn: KeyError: 'loss'", "ok   B: 1 ok"])
        self.assertIn("Traceback", self.read("programs.log"))
        with tarfile.open(packed) as tar:
            self.assertIn("out/gpu_tests.log", tar.getnames())

    def test_programs_that_are_not_there_are_failures(self):
        done = self.check("--stages", "devices,programs,gpu_tests", "--programs", "mnist_fluid")
        self.assertEqual(done.returncode, 1)
        checks = json.loads(self.read("summary.json"))["checks"]
        self.assertEqual([check["name"] for check in checks], ["devices", "programs mnist_fluid", "gpu_tests"])
        for check in checks:
            self.assertIn("No such file or directory", check["detail"])
        self.assertTrue(os.path.exists(self.out + ".tar.gz"))

    def test_a_folder_that_cannot_be_made_is_named(self):
        self.program("file", "")
        done = self.check("--pack", os.path.join(self.build, "file", "1.tar.gz"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("error: --pack: [Errno", done.stderr)

    def test_a_bench_that_breaks_is_a_failure(self):
        python = os.path.join(self.build, "python")
        self.program("python", "#!/bin/sh\n")  # which has PyTorch, and ends
        self.program("fluidrun", "#!/bin/sh\necho nothing\n")
        done = self.check("--stages", "bench", "--python", python, "--works", "matmul")
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAIL bench: json.decoder.JSONDecodeError", done.stdout)
        self.assertIn("FAIL bench matmul: not measured, though there was time\n", done.stdout)
        done = self.check("--stages", "bench", "--python", python, "--works", "matmul", "--deadline", "30")
        self.assertIn("NOT DONE bench matmul\n", done.stdout)

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

    def test_a_log_grows_while_its_stage_runs_and_a_signal_ends_it(self):
        for stops in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(stops):
                self.ends_by(stops)
        self.ends_by(signal.SIGTERM, signal.SIGHUP, prefix=["nohup"])

    def ends_by(self, stops, ignored=None, prefix=()):
        self.program("test_gpu", TEST_GPU, tests={"A.": ["One", "Hangs"]})
        heeded = lambda: [signal.signal(s, signal.SIG_DFL) for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)]
        process = subprocess.Popen([*prefix, sys.executable, os.path.join(HERE, "check.py"), "--build", self.build, "--out", self.out,
                                    "--stages", "gpu_tests"], stdout=subprocess.PIPE, text=True, preexec_fn=heeded)
        log = os.path.join(self.out, "gpu_tests.log")
        if os.path.exists(log):
            os.remove(log)
        for _ in range(200):
            if os.path.exists(log) and "] A.Hangs" in self.read("gpu_tests.log"):
                break
            time.sleep(0.1)
        self.assertIn("[       OK ] A.One", self.read("gpu_tests.log"))
        if ignored:
            process.send_signal(ignored)
            with self.assertRaises(subprocess.TimeoutExpired):
                process.wait(timeout=1)
        process.send_signal(stops)
        said, _ = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 2, said)
        self.assertIn("NOT DONE gpu_tests A.", said)

    def test_an_error_while_a_process_runs_ends_it(self):
        class Broken(processes.Processes):
            def watch(self, process, *_):
                self.started = process
                raise ValueError("watching it broke")

        broken = Broken(self.out, float("inf"))
        with self.assertRaises(ValueError):
            broken.run("log", ["sleep", "60"], 60)
        self.assertEqual(broken.started.poll(), -signal.SIGKILL)

    def test_a_description_holds_no_warnings(self):
        self.program("fluidrun", FLUIDRUN)
        self.assertEqual(self.check("--stages", "devices").returncode, 0)
        self.assertEqual(json.loads(self.read("devices.json")), {"machine": {"gpus": [{"name": "a GPU"}]}})
        self.assertIn("a driver's warning", self.read("devices.log"))

    def test_a_gpu_that_cannot_be_used_is_a_failure(self):
        for gpus, why in (('{"problem": "it is too old"}, {"name": "a good one"}', "it is too old"), ("", "no GPU is listed")):
            self.program("fluidrun", FLUIDRUN, gpus=gpus)
            done = self.check("--stages", "devices")
            self.assertEqual((done.returncode, done.stdout), (1, f"FAIL cuda:0 can be used: {why}; cuda:0  a GPU\n"))

    def packed(self):
        """The scripts that a bundle holds, their path by name."""
        with open(os.path.join(ROOT, "scripts/bundle"), encoding="utf-8") as f:
            found = re.findall(r"tests/(\w+)/\{?([\w,]+)\}?\.py", f.read())
        return {name: os.path.join(ROOT, "tests", folder, name + ".py") for folder, names in found for name in names.split(",")}

    def test_a_bundle_holds_what_its_scripts_import(self):
        packed = self.packed()
        own = {os.path.basename(path).removesuffix(".py") for path in glob.glob(os.path.join(ROOT, "tests/*/*.py"))}
        for path in packed.values():
            with open(path, encoding="utf-8") as f:
                nodes = list(ast.walk(ast.parse(f.read())))
            named = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
            named |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
            self.assertLessEqual(named & own, set(packed), path)
        self.assertLessEqual({"check", "gpu_bench", "gpu_results", "torch_peer"}, set(packed))

    def test_a_bundle_for_tests_without_what_finds_gpus_is_refused(self):
        done = subprocess.run([os.path.join(ROOT, "scripts/bundle"), "--tests", self.build], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, f"bundle: no libfluid_cuda.so in {self.build}, without which no GPU is found: "
                                      "CUDA was not there when that was built\n")

    def test_a_bundle_says_what_glibc_it_needs(self):
        for path in self.packed().values():
            shutil.copy(path, self.build)
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

    def test_the_sanitizer_of_pip_is_found(self):
        self.program("test_gpu", TEST_GPU, tests={"B.": ["Four"]})
        for folder in ("bin", "compute-sanitizer"):
            packages = os.path.join(self.build, "packages of " + folder)
            os.makedirs(os.path.join(packages, "nvidia/cu13", folder))
            os.symlink(os.path.join(ROOT, "tests/support/compute_sanitizer.py"),
                       os.path.join(packages, "nvidia/cu13", folder, "compute-sanitizer"))
            self.assertEqual(self.check("--stages", "sanitizer", "--filter", "B.Four", PYTHONPATH=packages).returncode, 0)
            self.assertIn("$ " + packages, self.read("sanitizer.log"))

    def test_libraries_kernels_are_checked_for_their_memory_alone(self):
        self.assertEqual(self.sanitize({"GpuLibraryProducts.": ["One"], "Group/GpuOps.": ["K/0"]})[0], 1)
        commands = [line for line in self.read("sanitizer.log").splitlines() if line.startswith("$")]
        self.assertEqual([("GpuLibrary" in line, "racecheck" in line) for line in commands],
                         [(True, False), (False, True)])

    def test_ctest_runs_each_class(self):
        with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as f:
            run = set(re.findall(r"check_test:(\w+)", f.read()))
        with open(os.path.abspath(__file__), encoding="utf-8") as f:
            classes = set(re.findall(r"^class (\w+)", f.read(), re.MULTILINE))
        self.assertEqual(run, classes - {"CheckCase"})

    def test_what_is_not_there_is_named(self):
        for option, named in (("--stages", "trajectories"), ("--programs", "mnist_fluid"), ("--networks", "resnet18"),
                              ("--works", "matmul")):
            done = self.check(option, "none,of_these")
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"{option}: no none, of_these; there are ", done.stderr)
            self.assertIn(named, done.stderr)

    def test_output_that_is_no_text_is_kept(self):
        self.program("fluidrun", "#!/bin/sh\nprintf 'cuda:0 \\377\\n'\n")
        self.check("--stages", "devices")
        self.assertIn("cuda:0 \ufffd", self.read("devices.log"))


class Training(CheckCase):
    def trained(self, stage, losses_of_gpu, *arguments, cpu=(2.0, 1.0), more=0, saves="1"):
        self.program("fluidrun", TRAINS, losses={"cpu": cpu, "cuda:0": losses_of_gpu}, more=more, saves=saves)
        done = self.check("--stages", stage, *arguments)
        return done.returncode, done.stdout

    def test_losses_that_are_no_numbers_are_far_from_all_others(self):
        nan, said = float("nan"), "mnist_fluid trains in f64 as on the CPU"
        for losses, expected in (([2.0, 1.0], f"ok   {said}: 0.0e+00 apart at step 9\n"),
                                 ([2.0, 1.01], f"FAIL {said}: 1.0e-02 apart at step 9\n"),
                                 ([2.0, None], f"FAIL {said}: inf apart at step 9\n"),
                                 ([2.0, nan], f"FAIL {said}: inf apart at step 9\n"),
                                 ([], f"FAIL {said}: 0 of 10 steps on cuda:0\n")):
            code, found = self.trained("programs", losses, "--programs", "mnist_fluid")
            self.assertEqual((code, found.splitlines(True)[0]), (int(expected.startswith("FAIL")), expected))

    def test_memory_is_compared_with_the_plan_in_every_precision(self):
        arguments = "--networks", "resnet18", "--steps", "25"
        code, said = self.trained("trajectories", [2.0, 1.0], *arguments)
        self.assertEqual(code, 0, said)
        taken = re.findall("ok   resnet18 (.*) takes what was planned without the GPU: ([0-9]+) bytes", said)
        self.assertEqual([mode for mode, _ in taken], ["f32", "bf16 o1", "bf16 o2", "f16 o1", "f16 o2"])
        self.assertEqual(len({size for _, size in taken}), 5)
        with open(os.path.join(self.out, "resnet18_f16_o2_cuda0.json"), encoding="utf-8") as f:
            self.assertEqual(len(f.readlines()), 25)
        code, said = self.trained("trajectories", [2.0, 1.0], *arguments, more=1)
        self.assertEqual((code, said.count("FAIL"), said.count("bytes taken")), (1, 5, 5))
        self.assertRegex(said, "planned [0-9]+; cudnn.conv2d cannot compute that: code is generated\n")

    def test_the_same_bits_come_again(self):
        arguments = "--networks", "resnet18", "--steps", "2"
        said = "FAIL resnet18 f16 o2 gives the same bits again: "
        code, found = self.trained("trajectories", [2.0, 1.0], *arguments)
        self.assertEqual((code, found.count("gives the same bits again\n")), (0, 5), found)
        with tarfile.open(self.out + ".tar.gz") as tar:
            self.assertFalse([name for name in tar.getnames() if name.endswith(".safetensors")])
        code, found = self.trained("trajectories", [2.0, 1.0], *arguments, saves="sys.argv[-1]")
        self.assertIn(said + "the parameters differ\n", found)
        self.program("fluidrun", TRAINS.replace("losses[i % len(losses)]", "losses[i % len(losses)] + 1e-6 * ('again' in sys.argv[-1])"),
                     losses={"cpu": [2.0, 1.0], "cuda:0": [2.0, 1.0]})
        self.assertIn(said + "the losses of step 0 differ\n", self.check("--stages", "trajectories", *arguments).stdout)

    def test_a_network_that_learns_too_little_says_nothing_of_a_run(self):
        arguments = "--networks", "alexnet_cifar10", "--steps", "2"
        code, said = self.trained("trajectories", [2.0, 1.95], *arguments, cpu=[2.0, 1.95])
        self.assertEqual(code, 1)
        self.assertIn("FAIL alexnet_cifar10 bf16 o1: 0.00 of what is allowed, at step 1; 1.64 without learning\n", said)
        self.assertIn("ok   alexnet_cifar10 f16 o1: 0.00 of what is allowed, at step 1; 13.1 without learning\n", said)
        code, said = self.trained("trajectories", [2.0, 2.0], *arguments)
        self.assertEqual((code, said.count("FAIL alexnet_cifar10")), (1, 5), said)


class Trajectories(unittest.TestCase):
    def test_a_run_may_leave_f64_as_far_as_the_cpu_does_some_times_over(self):
        from trajectories import FACTOR, farthest
        exact, cpu = [1.0, 1.0, 1.0], [1.0, 1.001, 1.0]
        near = [1.0, 1.0, 1 + 0.9 * FACTOR * 0.001]
        self.assertLess(farthest(near, cpu, exact, 1e-5)[0], 1)
        self.assertEqual(farthest([1.0001, 1.0, 1.0], cpu, exact, 1e-5)[1], 0)
        for wrong in ([1.0, 1.0, 1 + 1.1 * FACTOR * 0.001], [1.0, float("nan"), 1.0], [1.0, 1.0, float("inf")]):
            self.assertGreater(farthest(wrong, cpu, exact, 1e-5)[0], 1)
        for unknown in (float("inf"), float("nan")):
            self.assertGreater(farthest([1.0], [unknown], [1.0], 1e-5)[0], 1)


if __name__ == "__main__":
    unittest.main()
