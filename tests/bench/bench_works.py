"""The workloads of the benchmarks, and the file of results."""

import json
import os
import platform
import subprocess

from json_file import write_json

# work: (what it is, largest allowed ratio of Fluid's time to PyTorch's best)
TARGETS = {
    "linear_regression": ("linear regression, 1e6 x 2, Adam, a full-batch step", 0.1),
    "seed_cnn": ("CNN 1-32-64, batch 128 x 1 x 32 x 32, Adam", 0.95),
    "fluid_mnist": ("MNIST CNN 20-20, batch 100, SGD", 1.0),
    "seed_cnn_infer": ("CNN 1-32-64, inference of one image", 0.5),
    "alexnet": ("AlexNet, batch 64 x 3 x 227 x 227, AdamW", 0.85),
    "alexnet_bf16": ("the same in mixed precision, bf16", 0.75),
    "resnet18": ("ResNet-18, batch 128 x 3 x 32 x 32, momentum", 1.0),
    "resnet18_bf16": ("the same in mixed precision, bf16", 1.0),
    "char_gpt": ("GPT of 6 layers, 384 wide, batch 4 x 256 bytes, AdamW", 0.8),
    "char_gpt_bf16": ("the same in mixed precision, bf16", 0.8),
    "lstm_text": ("LSTM of 2 layers, 256 wide, batch 32 x 128 bytes, Adam", 0.8),
    "dlrm": ("DLRM, 26 tables of 10,000 x 16, batch 256, SGD", 0.5),
    "table": ("table of 10,000,000 x 16, batch of 4,096 rows, lazy Adam", 0.5),
    "mobilenet_v3_small": ("MobileNetV3-Small, batch 32 x 3 x 224 x 224, momentum", 0.8),
    "alexnet_image": ("AlexNet, inference of one image of 227 x 227", 0.95),
    "resnet18_image": ("ResNet-18, inference of one image of 32 x 32", 0.95),
    "resnet50_image": ("ResNet-50, inference of one image of 224 x 224", 0.95),
    "mobilenet_v3_small_image": ("MobileNetV3-Small, inference of one image of 224 x 224", 0.95),
    "bert_small_infer": ("BERT of 4 layers, 512 wide, inference of one text of 128 bytes", 0.95),
}
NETWORKS = ("alexnet", "alexnet_bf16", "resnet18", "resnet18_bf16", "char_gpt", "char_gpt_bf16")


def cpu_name():
    """Returns the CPU's name, family and model, because CPU generations may share one name."""
    with open("/proc/cpuinfo") as f:
        fields = dict(line.split(":", 1) for line in f if ":" in line)
    fields = {key.strip(): value.strip() for key, value in fields.items()}
    if "model name" not in fields:
        return platform.processor()
    return "{model name}, family {cpu family}, model {model}".format(**fields)


def measure_machine(build, folder):
    """Measures the CPU into a file in `folder`, which the processes started later read. Otherwise the first process of
    each empty cache would measure. Returns the rates."""
    path = os.path.join(folder, "machine.json")
    with open(path, "w") as f:
        subprocess.run([os.path.join(build, "fluidrun"), "devices", "--json", "--cache-dir", folder], stdout=f,
                       check=True)
    os.environ["FLUID_MACHINE"] = path
    with open(path) as f:
        machine = json.load(f)
    return {"gops": machine["gops"], "gbs": machine["gbs"]}


def write(results, path):
    """Merges `results` into the file, section by section. Replaces the results of the same workloads."""
    if os.path.exists(path):
        with open(path) as f:
            known = json.load(f)
        for section, values in results.items():
            if isinstance(values, dict):
                results[section] = known.get(section, {}) | values
        results = known | results
    write_json(results, path)
