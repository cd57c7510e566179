"""Losses and parameters of a small GAN that PyTorch trains in f64: two Adam optimizers, two schedules.

    python tests/golden/gan.py > tests/golden/gan.json

In each cycle the discriminator takes two steps and the generator one, each on its own samples and noise.
"""

import json

import torch
import torch.nn.functional as F

from training import uniform

SAMPLES, SIDE, LATENT, WIDTH, CYCLES = 6, 3, 2, 5, 10
torch.set_default_dtype(torch.float64)


def numbers(stream, *shape):
    return torch.tensor(2 * uniform(stream, torch.Size(shape).numel()).reshape(shape) - 1)


def layer(stream, n_in, n_out):
    return [numbers(stream, n_in, n_out).requires_grad_(), numbers(stream + 1, n_out).requires_grad_()]


g = layer(0, LATENT, WIDTH) + layer(2, WIDTH, SIDE * SIDE)
d = layer(4, SIDE * SIDE, WIDTH) + layer(6, WIDTH, 1)


def generate(noise):
    return torch.sigmoid(F.relu(noise @ g[0] + g[1]) @ g[2] + g[3])


def discriminate(x):
    return F.leaky_relu(x @ d[0] + d[1], 0.2) @ d[2] + d[3]


def bce(logits, target):
    return F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, target))


adam_d = torch.optim.Adam(d, lr=0.02, betas=(0.5, 0.999))
adam_g = torch.optim.Adam(g, lr=0.05, betas=(0.5, 0.999))
schedule_d = torch.optim.lr_scheduler.StepLR(adam_d, step_size=4, gamma=0.5)
schedule_g = torch.optim.lr_scheduler.CosineAnnealingLR(adam_g, T_max=CYCLES)
losses, rates = [], []
for step in range(3 * CYCLES):
    image = (numbers(100 + step, SAMPLES, SIDE * SIDE) + 1) / 2
    noise = numbers(200 + step, SAMPLES, LATENT)
    if step % 3 < 2:
        optimizer, schedule = adam_d, schedule_d
        loss = bce(discriminate(image), 1) + bce(discriminate(generate(noise).detach()), 0)
    else:
        optimizer, schedule = adam_g, schedule_g
        loss = bce(discriminate(generate(noise)), 1)
    rates.append(optimizer.param_groups[0]["lr"])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    losses.append(loss.item())


def rounded(values):
    return [float(f"{v:.13g}") for v in values]


parameters = [v for p in g + d for v in p.detach().flatten().tolist()]
print(
    json.dumps(
        {
            "made_by": "tests/golden/gan.py",
            "torch": torch.__version__,
            "losses": rounded(losses),
            "rates": rounded(rates),
            "parameters": rounded(parameters),
        }
    )
)
