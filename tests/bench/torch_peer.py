"""Benchmarks one workload on PyTorch or ONNX Runtime:
python torch_peer.py WORK eager|compile|onnxruntime nchw|nhwc|sparse [cuda]

Prints {"ready": ..., "first_s": ...} after the warm-up. For each line on stdin, runs 50 steps (exceptions are
in STEPS) and prints {"ms": milliseconds per step}. Ends at the end of stdin. A step moves the batch to the
device, trains or infers, and fetches the loss or the result as a number. On a GPU, the batch stays on the
device, compiled steps are CUDA graphs ("reduce-overhead"), and the peak memory of tensors is printed too.
WORK may end in _bf16, _f16 (with a GradScaler on a GPU) or _tf32.

python torch_peer.py WORK memory nchw|nhwc prints the peak bytes of tensors in an eager training step.
"""

import json
import os
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from torch_networks import Bert, CharGpt, Dlrm, LstmText, alexnet, mobilenet_v3_small, resnet18, resnet50

START = time.perf_counter()
NAME, MODE, LAYOUT = sys.argv[1:4]
DEVICE = sys.argv[4] if len(sys.argv) > 4 else "cpu"
HALVES = {"bf16": torch.bfloat16, "f16": torch.float16}
WORK, _, SUFFIX = NAME.rpartition("_")
if SUFFIX not in (*HALVES, "tf32"):
    WORK, SUFFIX = NAME, ""
HALF = HALVES.get(SUFFIX)
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = SUFFIX == "tf32"
torch.backends.cudnn.benchmark = DEVICE == "cuda"  # sizes stay: as who wants speed sets it
torch.manual_seed(0)


class SeedCnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(1, 32, 3), nn.Conv2d(32, 64, 5)
        self.drop = nn.Dropout2d(0.1)
        self.l1, self.l2 = nn.Linear(64, 32), nn.Linear(32, 10)

    def forward(self, x):
        x = F.max_pool2d(self.c2(F.max_pool2d(self.c1(x), 2)), 2)
        x = F.adaptive_max_pool2d(self.drop(x), 1).flatten(1)
        return self.l2(F.relu(self.l1(x)))


class FluidMnist(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(1, 20, 5, padding=2), nn.Conv2d(20, 20, 5, padding=2)
        self.fc = nn.Linear(980, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.c1(x)), 2)
        x = F.max_pool2d(F.relu(self.c2(x)), 2)
        return self.fc(x.flatten(1))


def resident(x):
    """Marks x as a static input, so that CUDA graphs read it in place instead of copying it."""
    if MODE == "compile" and DEVICE == "cuda":
        torch._dynamo.mark_static_address(x)
    return x


def placed(model, x):
    model, x = model.to(DEVICE), x.to(DEVICE)
    if LAYOUT == "nhwc" and x.dim() == 4:
        form = torch.channels_last
        model, x = model.to(memory_format=form), x.contiguous(memory_format=form)
    return model, resident(x)


def compiled(f):
    if MODE != "compile":
        return f
    return torch.compile(f, mode="reduce-overhead") if DEVICE == "cuda" else torch.compile(f)


def trainer(model, x, y, loss_of, make_optimizer):
    model, x = placed(model, x)
    y = resident(y.to(DEVICE))
    optimizer = make_optimizer(model.parameters())
    forward = compiled(lambda x, y: loss_of(model(x), y))
    scaler = torch.amp.GradScaler(DEVICE, enabled=HALF == torch.float16)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, HALF or torch.bfloat16, enabled=HALF is not None):
            loss = forward(x, y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.item()

    step.parts = model, optimizer

    return step


def onnx_session(model, x):
    """Returns a function that runs the model in ONNX Runtime, on as many threads as there are CPUs."""
    import io
    import onnxruntime
    file = io.BytesIO()
    torch.onnx.export(model, (x,), file, dynamo=False, input_names=["x"])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = os.cpu_count()
    session = onnxruntime.InferenceSession(file.getvalue(), options, providers=["CPUExecutionProvider"])
    return lambda x: torch.from_numpy(session.run(None, {"x": x.numpy()})[0])


def inferrer(model, x):
    model, x = placed(model.eval(), x)
    forward = onnx_session(model, x) if MODE == "onnxruntime" else compiled(model)

    def step():
        with torch.inference_mode():
            return forward(x).sum().item()

    return step


FUSED = True if DEVICE == "cuda" else None


def linear_regression():
    n = 1_000_000
    x = 10 * torch.rand(n, 2) - 5
    y = x @ torch.tensor([[2.0], [-3.0]]) + 10 + torch.normal(0.0, 2.0, (n, 1))
    return trainer(nn.Linear(2, 1), x, y, F.mse_loss, lambda p: torch.optim.Adam(p, 0.1, fused=FUSED))


def matmul():
    a, b = (resident(torch.rand(*shape, device=DEVICE)) for shape in ((10000, 200), (200, 10000)))
    product = compiled(lambda: a @ b)
    return lambda: product()[0, 0].item()


def classifier(net, n, side, make_optimizer):
    return trainer(net, torch.rand(n, 3, side, side), torch.randint(10, (n,)), F.cross_entropy, make_optimizer)


def alexnet_b64():
    return classifier(alexnet(), 64, 227, lambda p: torch.optim.AdamW(p, 1e-4, fused=True))


def resnet18_of(batch):
    return classifier(resnet18(), batch, 32,
                      lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=5e-4, fused=True))


def byte_model(net, batch, length, make_optimizer):
    text, target = (torch.randint(256, (batch, length)) for _ in range(2))
    loss = lambda logits, y: F.cross_entropy(logits.flatten(0, 1), y.flatten())
    return trainer(net, text, target, loss, make_optimizer)


def char_gpt():
    return byte_model(CharGpt(6, 6, 384, 256), 4, 256, lambda p: torch.optim.AdamW(p, 1e-3, fused=True))


def lstm_text():
    return byte_model(LstmText(2, 256), 32, 128, lambda p: torch.optim.Adam(p, 2e-3, fused=True))


def table():
    loss = lambda y, target: (y - target).square().mean()
    index, target = torch.randint(10_000_000, (4096,)), torch.rand(4096, 16)
    return trainer(nn.Embedding(10_000_000, 16, sparse=True), index, target, loss,
                   lambda p: torch.optim.SparseAdam(list(p), 1e-3))


def dlrm():
    sparse = LAYOUT == "sparse"
    x = torch.cat([torch.rand(256, 13), torch.randint(10000, (256, 26)).float()], 1)
    y = torch.randint(2, (256, 1)).float()
    return trainer(Dlrm(sparse=sparse), x, y, F.binary_cross_entropy_with_logits,
                   lambda p: torch.optim.SGD(p, 0.1, fused=None if sparse else True))


def mobilenet_v3_small_b32():
    return classifier(mobilenet_v3_small(), 32, 224,
                      lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=1e-5, fused=True))


WORKS = {
    "linear_regression": linear_regression,
    "seed_cnn": lambda: trainer(SeedCnn(), torch.rand(128, 1, 32, 32), torch.randint(10, (128,)),
                                F.cross_entropy, lambda p: torch.optim.Adam(p, 0.02, fused=FUSED)),
    "fluid_mnist": lambda: trainer(FluidMnist(), torch.rand(100, 1, 28, 28), torch.randint(10, (100,)),
                                   F.cross_entropy, lambda p: torch.optim.SGD(p, 0.01, fused=FUSED)),
    "seed_cnn_infer": lambda: inferrer(SeedCnn(), torch.rand(1, 1, 32, 32)),
    "alexnet": alexnet_b64,
    "resnet18": lambda: resnet18_of(128),
    "resnet18_b64": lambda: resnet18_of(64),
    "char_gpt": char_gpt,
    "lstm_text": lstm_text,
    "dlrm": dlrm,
    "table": table,
    "mobilenet_v3_small": mobilenet_v3_small_b32,
    "matmul": matmul,
    "alexnet_image": lambda: inferrer(alexnet(), torch.rand(1, 3, 227, 227)),
    "resnet18_image": lambda: inferrer(resnet18(), torch.rand(1, 3, 32, 32)),
    "resnet50_image": lambda: inferrer(resnet50(), torch.rand(1, 3, 224, 224)),
    "bert_small_infer": lambda: inferrer(Bert(4, 8, 512, 128), torch.randint(1, 256, (1, 128))),
    "mobilenet_v3_small_image": lambda: inferrer(mobilenet_v3_small(), torch.rand(1, 3, 224, 224)),
}
STEPS = {"linear_regression": 500, "seed_cnn_infer": 500, "alexnet": 3, "resnet18": 3, "resnet18_b64": 3, "char_gpt": 3, "lstm_text": 5,
         "mobilenet_v3_small": 5}.get(WORK, 50)
if DEVICE == "cuda":
    STEPS = max(STEPS, 50)

step = WORKS[WORK]()
step()
first = time.perf_counter() - START
if MODE == "memory":
    from torch.distributed._tools.mem_tracker import MemTracker
    tracker = MemTracker()
    tracker.track_external(*step.parts)
    with tracker:
        step()
    peak = tracker.get_tracker_snapshot("peak")[torch.device("cpu")]
    print(json.dumps({"peak_bytes": {str(kind): size for kind, size in peak.items()}}))
    sys.exit()
if DEVICE == "cuda":
    torch.cuda.reset_peak_memory_stats()  # what compiling and trying algorithms took is over
for _ in range(min(10, STEPS)):
    step()
ready = {"ready": NAME, "first_s": first, "version": torch.__version__, "threads": torch.get_num_threads()}
if DEVICE == "cuda":
    ready |= {"peak_bytes": torch.cuda.max_memory_allocated(), "gpu": torch.cuda.get_device_name(),
              "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(),
              "nccl": ".".join(map(str, torch.cuda.nccl.version()))}
print(json.dumps(ready), flush=True)


def step_for(seconds):
    """Milliseconds per step, measured for `seconds` seconds."""
    start, steps = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        step()
        steps += 1
    return (time.perf_counter() - start) * 1e3 / steps


def time_steps():
    if DEVICE == "cuda":
        step_for(0.2)  # lets the clocks rise
        return step_for(0.5)
    step_for(0.1)  # the caches fill again after other processes ran
    start = time.perf_counter()
    for _ in range(STEPS):
        step()
    return (time.perf_counter() - start) * 1e3 / STEPS


for _ in sys.stdin:
    print(json.dumps({"ms": time_steps()}), flush=True)
