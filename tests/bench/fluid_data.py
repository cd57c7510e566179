"""The data of Fluid's readers (frontend/readers), computed with numpy."""

import gzip
import math
import os
from dataclasses import dataclass

import numpy as np
import torch

TRAIN_IMAGES, VALIDATION_IMAGES = 3000, 1000


@dataclass
class Data:
    """`spec` makes fluidrun read the same data. `train` and `validation` map feeds to columns."""

    spec: str
    train: dict
    validation: dict


def mix(z):
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def shuffled(n, seed, stream):
    """Returns 0, ..., n - 1 in the order in which Reader::set_order() shuffles epoch `stream`."""
    seed, stream = mix(np.array([[seed], [stream + 0x632BE59BD9B4E019]], np.uint64))
    steps = np.arange(1, n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    order = list(range(n))
    for i, number in zip(range(n - 1, 0, -1), mix((seed ^ stream) + steps).tolist()):
        j = number * (i + 1) >> 64
        order[i], order[j] = order[j], order[i]
    return np.array(order)


def text_data(length):
    """Windows of a text, as in readers/text.cpp."""

    def windows(text):
        n = (len(text) - 1) // length * length
        return {"text": text[:n].reshape(-1, length), "target": text[1 : n + 1].reshape(-1, length)}

    def read(folder, _):
        path = os.path.join(folder, "text", "tinyshakespeare.txt")
        text = np.fromfile(path, np.uint8)
        train = int(len(text) * (1 - 0.1))
        return Data(f"text:{path}?length={length}", windows(text[:train]), windows(text[train:]))

    return read


def housing_data(folder, _):
    """Rows of a table, split as in readers/row_split.cpp."""
    path = os.path.join(folder, "tabular", "california_housing.csv")
    rows = np.loadtxt(path, delimiter=",", skiprows=1).astype(np.float32)
    held = np.zeros(len(rows), bool)
    held[shuffled(len(rows), 0, 0x73706C6974)[: math.floor(0.2 * len(rows) + 0.5)]] = True
    columns = lambda rows: {"x": rows[:, :-1], "y": rows[:, -1:]}
    spec = f"csv:{path}?label=median_house_value&val=0.2"
    return Data(spec, columns(rows[~held]), columns(rows[held]))


def image_data(folder, scratch):
    """Writes the first images of CIFAR-10 to `scratch`, as two splits that fluidrun reads."""
    folder = os.path.join(folder, "cifar10")
    name = min(name for name in os.listdir(folder) if name.startswith("data_batch_1"))
    with (gzip.open if name.endswith(".gz") else open)(os.path.join(folder, name), "rb") as f:
        records = np.frombuffer(f.read(), np.uint8).reshape(-1, 3073)
    splits = np.split(records, [TRAIN_IMAGES, TRAIN_IMAGES + VALIDATION_IMAGES])[:2]
    for split, file in zip(splits, ("data_batch_1.bin", "test_batch.bin")):
        split.tofile(os.path.join(scratch, file))
    columns = lambda rows: {"image": rows[:, 1:].reshape(-1, 3, 32, 32), "label": rows[:, 0]}
    return Data(f"cifar10:{scratch}", *map(columns, splits))


def feed(column, attrs):
    """Returns a column as a tensor: floats scaled and normalised by the attributes of the feed, or integers."""
    if "scale" not in attrs and "mean" not in attrs:
        return torch.from_numpy(column.astype(np.int64))
    channels = lambda values: np.reshape(np.float32(values), (-1,) + (1,) * (column.ndim - 2))
    x = column.astype(np.float32) * np.float32(attrs.get("scale", 1))
    return torch.from_numpy((x - channels(attrs["mean"])) / channels(attrs["std"]))
