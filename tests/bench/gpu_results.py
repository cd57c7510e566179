"""Prints the results of gpu_bench.py with their targets: python gpu_results.py FILE.json ...

With --out FILE.json, also writes the merged results. For a workload in several files, the last file counts.
"""

import argparse
import json
import os
import sys

from json_file import write_json

HEAD = ("| work | Fluid ms | eager ms | compiled ms | to eager | to compiled | memory "
        "| first step s: Fluid / eager / compiled | % of FLOP/s | % of bytes/s | targets |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|")
SIDES = ("fluid", "torch-eager", "torch-compile")
FIGURES = {  # comparison: (side of PyTorch, figure of Fluid, figure of PyTorch)
    "eager": ("torch-eager", "ms", "ms"),
    "compiled": ("torch-compile", "ms", "ms"),
    "memory": ("torch", "arena_bytes", "peak_bytes"),
}


def best(rows, side, figure="ms"):
    """The smallest figure of a side's rows; None if there is none: a row may have None, if it was not measured."""
    figures = [row[figure] for name, row in rows.items() if name.startswith(side)]
    return min((known for known in figures if known is not None), default=None)


def comparison(name, at_most, rows, left_out, failed=()):
    """Returns the ratio of Fluid's figure to PyTorch's best one, and whether it meets the target `at_most`.
    `met` is None if there is no target, if a side was left out, or if a failed side might be better."""
    side, ours, theirs = FIGURES[name]
    figures = best(rows, "fluid", ours), best(rows, side, theirs)
    ratio = figures[0] / figures[1] if all(figures) else None
    if at_most is None:
        met = None
    elif ratio is not None and ratio > at_most:
        met = False  # even if a missing side is better
    elif any(other.startswith((side, "fluid")) for other in left_out):
        met = None
    elif ratio is not None and any(other.startswith(side) for other in failed):
        met = None
    else:
        met = ratio is not None
    return {"ratio": ratio, "at_most": at_most, "met": met}


def compare(limits, rows, left_out=(), failed=()):
    return {name: comparison(name, limit, rows, left_out, failed) for name, limit in zip(FIGURES, limits, strict=True)}


def verdict(work):
    """Returns "met", "missed: " with the missed comparisons, or "not known"."""
    missed = [name for name, figure in work["comparison"].items() if figure["met"] is False]
    if missed:
        return "missed: " + ", ".join(missed)
    known = all(figure["met"] for figure in work["comparison"].values() if figure["at_most"] is not None)
    return "met" if known else "not known"


def text(number, places):
    return "-" if number is None else f"{number:.{places}f}"


def ratio_text(figure):
    limit = "" if figure["at_most"] is None else f" (<= {figure['at_most']})"
    return text(figure["ratio"], 2) + limit


def percent_of_limit(rows, what):
    """The lower bound of the step time, by arithmetic or by memory, in percent of Fluid's step time."""
    row = rows.get("fluid", {})
    return 100 * row[what] / row["ms"] if what in row else None


def line_of(work):
    rows = work["rows"]
    cells = [text(best(rows, side), 3) for side in SIDES]
    cells += [ratio_text(figure) for figure in work["comparison"].values()]
    cells.append(" / ".join(text(best(rows, side, "first_s"), 2) for side in SIDES))
    cells += [text(percent_of_limit(rows, what), 0) for what in ("arithmetic_ms", "memory_ms")]
    return "| " + " | ".join([work["what"], *cells, verdict(work)]) + " |"


def says(work):
    """The comparison as one line, for a list of checks."""
    figures = "; ".join(f"{name} {ratio_text(figure)}" for name, figure in work["comparison"].items())
    return "; ".join([figures, *work["failures"], *(f"{name} left out" for name in work["left_out"])])


def read(path):
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as f:
        return json.load(f)["works"]


def write(works, path):
    """Merges `works` into the file. Replaces the results of the same workloads."""
    write_json({"works": read(path) | works}, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--out")
    args = parser.parse_args()
    works = {}
    for path in args.files:
        if not os.path.exists(path):
            parser.error(f"there is no {path}")
        works |= read(path)
    print(HEAD, *map(line_of, works.values()), sep="\n")
    if args.out:
        write(works, args.out)


if __name__ == "__main__":
    sys.exit(main())
