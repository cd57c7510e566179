"""Compares the generated kernels of each network with the copy bandwidth of the machine.

A kernel moves at least the bytes of its operands and results, each once. Its fraction is these bytes by its time,
divided by the bandwidth of a copy that the same process measures in the level that holds the step's memory: L2, L3
or memory. A kernel that finds operands in a faster level may exceed 1. Kernels that gather from tables are left out,
because they touch a part of their operands only. Times are lower quartiles over the steps, and the bandwidth is the
best of several copies: both leave out what other programs disturb.
"""

import collections
import json
import os
import subprocess
import sys
import tempfile

from bench_works import TARGETS

LEAST_FRACTION = 0.6  # of all generated kernels of a step together
LEAST_KERNEL_FRACTION = 0.4  # of each kernel that takes more than MOST_SHARE of a step
MOST_SHARE = 0.01
OPTIONS = {"networks": {"default": "", "help": "the networks of `kernels`, separated by commas"},
           "check": {"action": "store_true", "help": "fail if generated kernels miss their targets"}}


def fraction(calls, copy_gbs):
    """The fraction of the copy bandwidth that the calls reach together; 0 if they take no time."""
    ms = sum(call["ms"] for call in calls)
    return sum(call["bytes"] for call in calls) / (ms * 1e6) / copy_gbs if ms > 0 else 0.0


def summary(profile):
    """Sums the generated kernels of a profiled step: all, the slow ones, and by kind, layout and dtype."""
    copy, step = profile["copy_gbs"], profile["step_ms"]
    generated = [call for call in profile["calls"] if call["kernel"] == "generated"]
    moving = [call for call in generated if call["kind"] != "gather"]
    slow = []
    for call in moving:
        share, of_copy = call["ms"] / step, fraction([call], copy)
        if share > MOST_SHARE and of_copy < LEAST_KERNEL_FRACTION:
            slow.append(call | {"share": share, "gbs": call["bytes"] / call["ms"] / 1e6, "fraction": of_copy})
    groups = collections.defaultdict(list)
    for call in moving:
        groups[call["kind"], call["layout"], call["dtype"]].append(call)
    table = [{"kind": kind, "layout": layout, "dtype": dtype, "calls": len(calls),
              "ms": sum(call["ms"] for call in calls), "fraction": fraction(calls, copy)}
             for (kind, layout, dtype), calls in groups.items()]
    return {"step_ms": step, "arena_bytes": profile["arena_bytes"], "threads": profile["threads"],
            "level": profile["level"], "copy_gbs": copy, "share": sum(call["ms"] for call in generated) / step,
            "fraction": fraction(moving, copy), "slow": sorted(slow, key=lambda call: -call["ms"]),
            "table": sorted(table, key=lambda row: -row["ms"])}


def misses(name, result):
    """The missed targets of a network, as texts."""
    texts = []
    if result["table"] and result["fraction"] < LEAST_FRACTION:
        texts.append(f"kernels of {name}: {result['fraction']:.2f} of a copy")
    return texts + [f"{call['kind']} kernel of {name} in {call['layer']}" for call in result["slow"]]


def print_summary(text, result):
    print(f"\n{text}: {result['step_ms']:.3f} ms a step, {100 * result['share']:.0f} % in generated kernels, "
          f"{result['fraction']:.2f} of a copy in {result['level']} at {result['copy_gbs']:.1f} GB/s")
    print("| kind | layout | dtype | kernels | ms | of a copy |\n|---|---|---|---|---|---|")
    for row in result["table"]:
        print(f"| {row['kind']} | {row['layout']} | {row['dtype']} | {row['calls']} | {row['ms']:.3f} "
              f"| {row['fraction']:.2f} |")
    for call in result["slow"]:
        print(f"slow: {100 * call['share']:.1f} % of the step, {call['ms']:.3f} ms, {call['gbs']:.1f} GB/s, "
              f"{call['fraction']:.2f} of a copy: {call['role']} {call['kind']}, {call['layout']}, "
              f"{call['dtype']}, in {call['layer']}: {call['ops']}", flush=True)


def profile(build, name, cache):
    run = subprocess.run([os.path.join(build, "fluid_bench"), name, "--kernels", cache], check=True,
                         stdout=subprocess.PIPE, text=True)
    return json.loads(run.stdout)


def report(args):
    """Prints the kernels of each network. Returns the results for the JSON file, and the missed targets."""
    names = args.networks.split(",") if args.networks else list(TARGETS)
    unknown = set(names) - set(TARGETS)
    if unknown:
        sys.exit(f"no network {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
    results, missed = {}, []
    with tempfile.TemporaryDirectory() as cache:
        for name in names:
            results[name] = summary(profile(args.build, name, cache))
            print_summary(f"{name}, {TARGETS[name][0]}", results[name])
            missed += misses(name, results[name])
    return results, missed
