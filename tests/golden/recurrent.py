"""Outputs, final states and gradients of PyTorch's recurrent layers, in f64.

    python tests/golden/recurrent.py

All tensors come from training.py's `uniform`: parameter k of Fluid's layer from stream k, the others
from the streams below. Fluid's parameters of a layer and direction are w [gates H, features],
u [gates H, H], b [gates H], and for a GRU c [H].
"""

import json
import pathlib

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from training import uniform

N, T, F, H = 3, 4, 3, 3
INPUT, INITIAL, OUTPUT_WEIGHTS, STATE_WEIGHTS = 100, 110, 130, 140
KINDS = {"rnn": (nn.RNN, 1, 1), "rnn_relu": (nn.RNN, 1, 1), "gru": (nn.GRU, 3, 1), "lstm": (nn.LSTM, 4, 2)}


def numbers(stream, shape):
    return torch.tensor(2 * uniform(stream, int(np.prod(shape))).reshape(shape) - 1, requires_grad=True)


class Cell:
    """Fluid's parameters of one layer and direction."""

    def __init__(self, kind, k, features, bias):
        gates = KINDS[kind][1]
        shapes = [(gates * H, features), (gates * H, H)]
        shapes += [(gates * H,)] if bias else []
        shapes += [(H,)] if bias and kind == "gru" else []
        self.parameters = [(numbers(k + i, s) / np.sqrt(H)).detach().requires_grad_()
                           for i, s in enumerate(shapes)]

    def torch_parameters(self):
        """weight_ih, weight_hh, bias_ih, bias_hh. b is the sum of two biases, except in the gate n of a GRU."""
        w, u, *biases = self.parameters
        if not biases:
            return [w, u]
        if len(biases) == 1:
            return [w, u, 0.75 * biases[0], 0.25 * biases[0]]
        b, c = biases
        r_and_z, n = b.split([2 * H, H])
        return [w, u, torch.cat([0.75 * r_and_z, n]), torch.cat([0.25 * r_and_z, c])]


def run(kind, layers=1, bidirectional=False, bias=True, initial=False, lengths=None):
    make, _, states = KINDS[kind]
    options = {"nonlinearity": "relu"} if kind == "rnn_relu" else {}
    directions = 2 if bidirectional else 1
    net = make(F, H, layers, bias=bias, batch_first=True, bidirectional=bidirectional, **options).double()
    cells, given, k = [], {}, 0
    for layer in range(layers):
        for suffix in ["", "_reverse"][:directions]:
            cells.append(Cell(kind, k, F if layer == 0 else directions * H, bias))
            k += len(cells[-1].parameters)
            names = ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]
            for name, p in zip(names, cells[-1].torch_parameters()):
                given[f"{name}_l{layer}{suffix}"] = p
    assert given.keys() == dict(net.named_parameters()).keys()

    x = numbers(INPUT, (N, T, F))
    count = layers * directions * states
    start = [numbers(INITIAL + i, (N, H)) for i in range(count)] if initial else []
    # Fluid orders states by layer and direction, then hidden state and cell state.
    stacked = tuple(torch.stack(start[i::states]) for i in range(states)) if initial else None
    if initial and states == 1:
        stacked = stacked[0]
    inputs = x
    if lengths:
        inputs = pack_padded_sequence(x, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    output, last = torch.func.functional_call(net, given, (inputs, stacked))
    if lengths:
        output, _ = pad_packed_sequence(output, batch_first=True, total_length=T)
    last = last if states == 2 else (last,)
    final = [last[i % states][i // states] for i in range(count)]

    loss = (output * numbers(OUTPUT_WEIGHTS, output.shape)).sum()
    for i, state in enumerate(final):
        loss = loss + (state * numbers(STATE_WEIGHTS + i, state.shape)).sum()
    loss.backward()
    parameters = [p for cell in cells for p in cell.parameters]
    return {
        "kind": kind, "layers": layers, "bidirectional": bidirectional, "bias": bias,
        "initial": initial, "lengths": lengths or [],
        "output": flat(output), "states": [flat(s) for s in final],
        "grad_x": flat(x.grad), "grad_initial": [flat(s.grad) for s in start],
        "grad_parameters": [flat(p.grad) for p in parameters],
    }


def flat(tensor):
    return [float(f"{v:.12g}") for v in tensor.detach().flatten().tolist()]


def main():
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    cases = []
    for kind in KINDS:
        cases.append(run(kind))
        cases.append(run(kind, bias=False, initial=True))
        cases.append(run(kind, layers=2, bidirectional=True, initial=True))
        cases.append(run(kind, layers=2, bidirectional=True, initial=True, lengths=[2, 4, 1]))
        cases.append(run(kind, lengths=[3, 1, 2]))
    sizes = '{"N": %d, "T": %d, "features": %d, "H": %d}' % (N, T, F, H)
    text = '{"torch": "%s",\n"sizes": %s,\n"cases": [\n%s]}\n' % (
        torch.__version__, sizes, ",\n".join(json.dumps(c) for c in cases))
    pathlib.Path(__file__).with_suffix(".json").write_text(text)


if __name__ == "__main__":
    main()
