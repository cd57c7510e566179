"""Measures the start-up time of `fluidrun train`, with an empty and with a warm kernel cache, and how much longer the
first step takes than later ones."""

import json
import os
import re
import statistics
import subprocess
import tempfile
import time

TRAIN_AND_VAL = {  # the batch divides neither dataset, so each has two batch sizes
    "linear_regression": (["--data", "synthetic-linear", "--batch", "300000"],
                          ["--val", "synthetic-linear?n=500000&seed=1"]),
    "mnist_fluid": (["--data", "digits", "--batch", "128"], ["--val", "digits"]),
    "mnist_cnn": (["--data", "digits", "--batch", "128"], ["--val", "digits"]),
}
MODELS = {  # examples and their data; {} is the folder of the real data
    "resnet18": "cifar10:{}/cifar10?limit=4",
    "resnet50": "cifar10:{}/cifar10?limit=4",
    "mobilenet_v3_small": "cifar10:{}/cifar10?limit=4",
    "vit_tiny": "cifar10:{}/cifar10?limit=4",
    "unet": "digits?limit=4",
    "vae": "digits?limit=4",
    "multi_task": "digits?limit=4",
    "gan": "digits?limit=4",
    "california_housing": "csv:{}/tabular/california_housing.csv?label=median_house_value&limit=4",
    "char_gpt": "text:{}/text/tinyshakespeare.txt?limit=4",
    "bert_tiny": "text:{}/text/tinyshakespeare.txt?limit=4",
    "lstm_text": "text:{}/text/tinyshakespeare.txt?limit=4&length=128",
}
DEEP = "mlp_1000_layers"  # deep_program()
DEEP_LIMIT = 5  # seconds to compile the training step of DEEP without a cache
RECIPES = {"gan": ["--recipes", "discriminator,generator"]}  # of programs with several
MODEL_LIMIT = 3  # seconds to compile the training step of a model without a cache
LIMITS = {  # medians, in seconds
    "compile": ("all sizes compiled, no cache", 1.5),
    "load": ("all sizes from the cache", 0.1),
    "first_step": ("first step after the start, cached", 0.5),
}
FIRST_STEPS = {  # networks, and their samples per step: from kilobytes to gigabytes of memory
    "mnist_fluid": ("digits?limit=6400", 64),
    "lstm_text": ("text:{}/text/tinyshakespeare.txt?limit=160&length=128", 32),
    "resnet18": ("cifar10:{}/cifar10?limit=320", 64),
    "alexnet_cifar10": ("cifar10:{}/cifar10?limit=320", 64),
}
FIRST_STEP_LIMIT = 1.3  # ratio of the time of the first step to that of a later one
LINE = re.compile(r"(\d+) kernels compiled, (\d+) from the cache, (\d+) ms")


def train(fluidrun, program, flags, cache, cold):
    """Runs one training step. Returns the seconds of compilation that `train` reports, and of the process."""
    command = [fluidrun, "train", program, *flags, "--max-steps", "1", "--cache-dir", cache]
    begin = time.perf_counter()
    run = subprocess.run(command, capture_output=True, text=True)
    seconds = time.perf_counter() - begin
    line = LINE.search(run.stderr)
    if run.returncode != 0 or not line:
        raise RuntimeError(f"{' '.join(command)}: {run.stderr}")
    compiled, cached, ms = map(int, line.groups())
    if (compiled == 0) if cold else (compiled > 0 or cached == 0):
        raise RuntimeError(f"{program}, {'cold' if cold else 'warm'}: {line.group()}")
    return ms / 1e3, seconds


def measure(fluidrun, rounds):
    """Returns times[program][figure], a list with the seconds of each round. The programs take turns."""
    times = {program: {figure: [] for figure in LIMITS} for program in TRAIN_AND_VAL}
    for _ in range(rounds):
        for program, (data, val) in TRAIN_AND_VAL.items():
            seen = times[program]
            with tempfile.TemporaryDirectory() as cache:
                seen["compile"].append(train(fluidrun, program, data + val, cache, cold=True)[0])
                seen["load"].append(train(fluidrun, program, data + val, cache, cold=False)[0])
                seen["first_step"].append(train(fluidrun, program, data, cache, cold=False)[1])
    return times


def deep_program(layers):
    """Returns the text of a program of linear layers with tanh, of 16 to 31 units, for synthetic-linear."""
    lines = ['%x = data "x" : f32[?, 2]', '%y = data "y" : f32[?, 1]']
    value, width = "%x", 2
    for i in range(layers):
        units = 16 + i % 16 if i + 1 < layers else 1
        lines += [f'%w{i} = param "fc{i}.w" {{init = "xavier_uniform"}} : f32[{width}, {units}]',
                  f'%b{i} = param "fc{i}.b" {{init = "constant", value = 0.0}} : f32[{units}]',
                  f"%p{i} = matmul({value}, %w{i}) : f32[?, {units}]",
                  f"%s{i} = add(%p{i}, %b{i}) : f32[?, {units}]",
                  f"%h{i} = tanh(%s{i}) : f32[?, {units}]"]
        value, width = f"%h{i}", units
    lines += [f"%d = sub({value}, %y) : f32[?, 1]", "%q = square(%d) : f32[?, 1]", "%loss = mean(%q) : f32[]",
              'train(%loss) {optimizer = "sgd", lr = 0.001}', 'output "loss" = %loss']
    return "program @deep {\n  " + "\n  ".join(lines) + "\n}\n"


def measure_models(build, rounds):
    """Returns times[model], a list with the seconds to compile its training step. The models take turns."""
    data = MODELS | {DEEP: "synthetic-linear?n=4"}
    times = {model: [] for model in data}
    with tempfile.TemporaryDirectory() as folder:
        programs = {model: f"{folder}/{model}.fluid" for model in MODELS} | {DEEP: f"{folder}/{DEEP}.fir"}
        for model in MODELS:
            subprocess.run([os.path.join(build, "examples", model), "--save", programs[model]],
                           capture_output=True, check=True)
        with open(programs[DEEP], "w") as file:
            file.write(deep_program(1000))
        for round in range(rounds):
            for model, spec in data.items():
                flags = ["--data", spec.format(os.environ["FLUID_DATA"]), "--batch", "4", *RECIPES.get(model, [])]
                times[model].append(train(os.path.join(build, "fluidrun"), programs[model], flags,
                                          f"{folder}/{model}-{round}", cold=True)[0])
    return times


def first_step_ratio(build, network, spec, batch, folder):
    """Trains with a warm cache. Returns the first step's time divided by the median of steps 3 to 5."""
    log = os.path.join(folder, "log.json")
    command = [os.path.join(build, "fluidrun"), "train", network, "--data", spec.format(os.environ["FLUID_DATA"]),
               "--batch", str(batch), "--cache-dir", os.path.join(folder, "cache")]
    for flags in (["--max-steps", "1"], ["--max-steps", "5", "--log-json", log]):
        subprocess.run([*command, *flags], capture_output=True, check=True)
    with open(log) as file:
        events = [json.loads(line) for line in file]
    os.remove(log)
    steps = [event["step_ms"] for event in events if "event" not in event]
    return steps[0] / statistics.median(steps[2:])


def report_first_steps(build, rounds):
    """Like report(), for the first steps."""
    print(f"| network | first step / later step (< {FIRST_STEP_LIMIT}) |\n|---|---|")
    results, missed = {}, []
    for network, (spec, batch) in FIRST_STEPS.items():
        with tempfile.TemporaryDirectory() as folder:
            ratios = [first_step_ratio(build, network, spec, batch, folder) for _ in range(rounds)]
        median = statistics.median(ratios)
        results[network] = {"ratio": median, "min": min(ratios), "max": max(ratios), "target": FIRST_STEP_LIMIT}
        if median >= FIRST_STEP_LIMIT:
            missed.append(f"{network} first step")
        print(f"| {network} | {median:.2f} |", flush=True)
    return results, missed


def report_models(build, rounds):
    """Like report(), for the models."""
    print(f"| model | seconds to compile a training step (< {MODEL_LIMIT}; {DEEP}: < {DEEP_LIMIT}) |\n|---|---|")
    results, missed = {}, []
    for model, seconds in measure_models(build, rounds).items():
        median, limit = statistics.median(seconds), DEEP_LIMIT if model == DEEP else MODEL_LIMIT
        results[model] = {"compile": {"s": median, "s_min": min(seconds), "s_max": max(seconds), "target": limit}}
        if median >= limit:
            missed.append(f"{model} compile")
        print(f"| {model} | {median:.2f} |", flush=True)
    return results, missed


def report(build, rounds):
    """Prints the table. Returns the results for the JSON file, and the names of missed targets."""
    times = measure(os.path.join(build, "fluidrun"), rounds)
    print("| seconds | " + " | ".join(f"{text} (< {limit})" for text, limit in LIMITS.values()) + " |")
    print("|---|" + "---|" * len(LIMITS))
    results, missed = {}, []
    for program, seen in times.items():
        rows = {figure: {"s": statistics.median(t), "s_min": min(t), "s_max": max(t), "target": LIMITS[figure][1]}
                for figure, t in seen.items()}
        missed += [f"{program} {figure}" for figure, row in rows.items() if row["s"] >= row["target"]]
        results[program] = rows
        print(f"| {program} | " + " | ".join(f"{row['s']:.3f}" for row in rows.values()) + " |", flush=True)
    models, slow = report_models(build, rounds)
    first_steps, long = report_first_steps(build, rounds)
    return results | models | {"first_steps": first_steps}, missed + slow + long
