#!/usr/bin/env python3
"""Checks with TensorBoard's own reader what `fluidrun train --tensorboard` writes: event_files.py FLUIDRUN. A run stops
after step 3, goes on to step 6, and goes on again from step 3 to step 9. Another one writes histograms, images and
text. Exits with 77 without TensorBoard."""
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import PIL.Image
    from tensorboard.backend.event_processing import event_accumulator
except ImportError:
    # the environment that scripts/test_python makes
    python = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/python/bin/python")
    if os.path.exists(python) and os.environ.get("FLUID_TEST_PYTHON") != python:
        os.execve(python, [python, *sys.argv], {**os.environ, "FLUID_TEST_PYTHON": python})
    print("skipped: the Python packages tensorboard and pillow are not installed; scripts/test_python installs them")
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


IMAGES = """program @blend {
  %x = data "image" : f32[?, 3, 5, 4]
  %y = data "label" : i64[?]
  %w = param "w" {init = "normal", std = 0.1} : f32[3, 5, 4]
  %v = param "v" {init = "constant", value = 0.5} : f32[]
  %b = mul(%x, %w) : f32[?, 3, 5, 4]
  %c = mul(%b, %v) : f32[?, 3, 5, 4]
  %s = square(%c) : f32[?, 3, 5, 4]
  %loss = mean(%s) : f32[]
  train(%loss) {optimizer = "sgd", lr = 0.0001}
  output "loss" = %loss
  output "blend" = %b
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


def read_all(folder):
    kinds = [event_accumulator.SCALARS, event_accumulator.HISTOGRAMS, event_accumulator.IMAGES]
    size_guidance = {kind: 0 for kind in [*kinds, event_accumulator.TENSORS]}
    reader = event_accumulator.EventAccumulator(folder, size_guidance=size_guidance)
    reader.Reload()
    return reader


def check_histogram(event, values, step):
    """Compares a histogram with numpy's of the values of --dump."""
    read, values = event.histogram_value, values.astype(np.float64).ravel()
    assert event.step == step, (event.step, step)
    assert (read.min, read.max, read.num) == (values.min(), values.max(), values.size), read
    np.testing.assert_allclose([read.sum, read.sum_squares], [values.sum(), np.square(values).sum()], rtol=1e-12)
    counts, edges = np.histogram(values, bins=30 if read.min < read.max else [read.min, read.max])
    np.testing.assert_array_equal(read.bucket, counts)
    np.testing.assert_allclose(read.bucket_limit, edges[1:], rtol=1e-12, atol=1e-15)


def pixels_of(event):
    image = np.asarray(PIL.Image.open(io.BytesIO(event.encoded_image_string)))
    assert (event.height, event.width) == image.shape[:2]
    return image


def check_other_values(fluidrun):
    """Histograms, images and text of two epochs of two steps of three samples."""
    with open("blend.fir", "w") as file:
        file.write(IMAGES)
    images = np.random.default_rng(1).integers(0, 256, (6, 3, 5, 4), dtype=np.uint8)
    np.savez("images.npz", image=images, label=np.arange(6))
    flags = ["--data", "npz:images.npz?shuffle=0", "--batch", "3", "--epochs", "2", "--tensorboard", "others"]
    flags += ["--tensorboard-histograms", "2", "--tensorboard-images", "2", "--dump-steps", "4"]
    dumped = ["w", "v", "w.grad", "v.grad", "blend"]
    command = [fluidrun, "train", "blend.fir", *flags, "--dump", ",".join(dumped)]
    subprocess.run(command, check=True, capture_output=True)
    reader = read_all("others")

    tags = {"parameter/w": "w", "parameter/v": "v", "gradient/w": "w.grad", "gradient/v": "v.grad"}
    assert sorted(reader.Tags()["histograms"]) == sorted(tags), reader.Tags()
    for tag, name in tags.items():
        events = reader.Histograms(tag)
        assert len(events) == 2
        for event, step in zip(events, [2, 4]):
            check_histogram(event, np.load(f"dump/step-{step:04}.{name}.npy"), step)

    expected = [f"{kind}/{i}" for kind in ("feed/image", "output/blend") for i in range(2)]
    assert sorted(reader.Tags()["images"]) == expected, reader.Tags()
    for i in range(2):
        feeds, outputs = reader.Images(f"feed/image/{i}"), reader.Images(f"output/blend/{i}")
        assert [e.step for e in feeds] == [e.step for e in outputs] == [1, 3]
        for event in feeds:
            np.testing.assert_array_equal(pixels_of(event), images[i].transpose(1, 2, 0))
        for event in outputs:
            blend = np.load(f"dump/step-{event.step:04}.blend.npy")[i].astype(np.float64)
            scaled = (blend - blend.min()) * (255 / (blend.max() - blend.min()))
            assert np.abs(pixels_of(event) - scaled.transpose(1, 2, 0)).max() <= 0.5 + 1e-9

    assert reader.Tags()["tensors"] == ["program"]
    (text,) = reader.Tensors("program")[0].tensor_proto.string_val
    assert reader.SummaryMetadata("program").plugin_data.plugin_name == "text"
    assert "program @blend" in text.decode() and 'output "blend"' in text.decode(), text
    print(f"{2 * len(tags)} histograms, {4 * 2} images and a text agree")


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

        reader = read_all("board")
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
        check_other_values(fluidrun)
        os.chdir("/")


if __name__ == "__main__":
    main()
