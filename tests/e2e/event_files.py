#!/usr/bin/env python3
"""Checks with TensorBoard's own reader what `fluidrun train --tensorboard` writes: event_files.py FLUIDRUN. A run stops
after step 3, goes on to step 6, and goes on again from step 3 to step 9. Exits with 77 without TensorBoard."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

try:
    from tensorboard.backend.event_processing import event_accumulator
except ImportError:
    print("skipped: the Python package tensorboard is not installed")
    sys.exit(77)

PROGRAM = """program @line {
  %x = data "x" : f32[?, 2]
  %y = data "y" : f32[?, 1]
  %w = param "w" {init = "xavier_uniform"} : f32[2, 1]
  %p = matmul(%x, %w) : f32[?, 1]
  %e = mse_loss(%p, %y) : f32[?, 1]
  %loss = mean(%e) : f32[]
  train(%loss) {optimizer = "sgd", lr = 0.001, schedule = "cosine", schedule_steps = 9}
  output "loss" = %loss
}
"""


def train(fluidrun, epochs, *more):
    data = ["--data", "synthetic-linear?n=25", "--val", "synthetic-linear?n=10", "--batch", "10"]
    precision = ["--amp", "o1", "--amp-dtype", "f16"]
    files = ["--checkpoint-dir", "run", "--log-json", "log.json", "--tensorboard", "board"]
    command = [fluidrun, "train", "line.fir", "--epochs", str(epochs), *data, *precision, *files, *more]
    subprocess.run(command, check=True, capture_output=True)


def logged_scalars():
    """The log as {tag: [(step, value), ...]}."""
    scalars = {}
    for line in map(json.loads, open("log.json")):
        step = line.get("step", line.get("steps"))
        names = {
            None: {"loss": "step/loss", "lr": "optimizer/learning_rate", "loss_scale": "optimizer/loss_scale"},
            "epoch": {"loss": "epoch/loss"},
            "validation": {"loss": "epoch/val_loss"},
        }[line.get("event")]
        for name, tag in names.items():
            scalars.setdefault(tag, []).append((step, line[name]))
    return scalars


def main():
    fluidrun = os.path.realpath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with open("line.fir", "w") as file:
            file.write(PROGRAM)
        train(fluidrun, 1)
        shutil.copytree("run", "run_after_step_3", symlinks=True)
        train(fluidrun, 2, "--resume")
        shutil.rmtree("run")
        os.rename("run_after_step_3", "run")
        train(fluidrun, 3, "--resume")
        assert len(os.listdir("board")) == 3

        reader = event_accumulator.EventAccumulator("board", size_guidance={event_accumulator.SCALARS: 0})
        reader.Reload()
        expected = logged_scalars()
        tags = reader.Tags()["scalars"]
        assert sorted(tags) == sorted(expected), tags
        for tag, values in expected.items():
            read = [(e.step, e.value) for e in reader.Scalars(tag)]
            assert [step for step, _ in read] == [step for step, _ in values], (tag, read)
            for (_, value), (_, logged) in zip(read, values):
                assert abs(value - logged) <= 1e-7 * abs(logged), (tag, value, logged)
        assert [step for step, _ in expected["step/loss"]] == list(range(1, 10)), expected
        print(f"{sum(map(len, expected.values()))} values of {len(tags)} tags agree")
        os.chdir("/")


if __name__ == "__main__":
    main()
