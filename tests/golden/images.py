"""Writes images.json: what torchvision.transforms.v2 and PIL make of images, for tests/frontend/image_test.cpp, and
archives of arrays, for npy_columns_test.cpp.

python3 tests/golden/images.py > tests/golden/images.json
"""

import io
import json
import sys

import numpy
import PIL
import torch
import torchvision
from PIL import Image
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

HEIGHT, WIDTH = 12, 17


def pattern(height=HEIGHT, width=WIDTH):
    """The image `pattern` of image_test.cpp."""
    y, x, c = numpy.meshgrid(range(height), range(width), range(3), indexing="ij")
    noise = (x * 2654435761 + y * 40503 + c * 97) % 65536 // 7 % 90
    return Image.fromarray(((x * 11 + y * 17 + c * 83 + noise) % 256).astype(numpy.uint8))


def exact(stage, image):
    return {"stage": stage, "height": image.height, "width": image.width, "pixels": image.tobytes().hex()}


def transforms(image):
    bicubic = v2.InterpolationMode.BICUBIC
    yield "resize=9x7", F.resize(image, [9, 7])
    yield "resize=5", F.resize(image, [5])
    yield "resize=13x17", F.resize(image, [13, 17])
    yield "resize=30x21", F.resize(image, [30, 21])
    yield "resize=6,interpolation=bicubic", F.resize(image, [6], interpolation=bicubic)
    yield "resize=15x22,interpolation=bicubic", F.resize(image, [15, 22], interpolation=bicubic)
    yield "center_crop=9", F.center_crop(image, [9, 9])
    yield "center_crop=7x12", F.center_crop(image, [7, 12])
    yield "center_crop=15", F.center_crop(image, [15, 15])
    yield "resize=14|center_crop=11", F.center_crop(F.resize(image, [14]), [11, 11])
    yield "flip=1", F.horizontal_flip(image)
    yield "vflip=1", F.vertical_flip(image)
    yield "pad=2", F.pad(image, [2])
    yield "pad=1:2,fill=200", F.pad(image, [1, 2], fill=200)
    yield "pad=1:2:3:4,mode=edge", F.pad(image, [1, 2, 3, 4], padding_mode="edge")
    yield "pad=3:1,mode=reflect", F.pad(image, [3, 1], padding_mode="reflect")
    yield "pad=0:2:3:1,mode=symmetric", F.pad(image, [0, 2, 3, 1], padding_mode="symmetric")
    for degrees in (30, -45, 90, 180, 271.5):
        yield f"rotate={degrees}:{degrees},fill=9", F.rotate(image, degrees, fill=9)
    yield "center_crop=10|rotate=90:90", F.rotate(F.center_crop(image, [10, 10]), 90)
    yield "center_crop=10|rotate=-90:-90", F.rotate(F.center_crop(image, [10, 10]), -90)
    for factor in (0, 0.35, 1, 1.7):
        yield f"color_jitter,brightness={factor}:{factor}", F.adjust_brightness(image, factor)
        yield f"color_jitter,contrast={factor}:{factor}", F.adjust_contrast(image, factor)
        yield f"color_jitter,saturation={factor}:{factor}", F.adjust_saturation(image, factor)
    for turn in (-0.5, -0.2, 0.07, 0.45):
        yield f"color_jitter,hue={turn}:{turn}", F.adjust_hue(image, turn)


def files():
    image = pattern(16, 24)
    smooth = image.resize((40, 27), Image.Resampling.BICUBIC)
    palette = smooth.quantize(16)
    alpha = smooth.copy()
    alpha.putalpha(image.convert("L").resize(smooth.size))
    for name, picture, options in [
        ("444.jpg", smooth, {"quality": 90, "subsampling": 0}),
        ("420.jpg", smooth, {"quality": 75, "subsampling": 2}),
        ("progressive.jpg", smooth, {"quality": 80, "progressive": True}),
        ("gray.jpg", smooth.convert("L"), {}),
        ("cmyk.jpg", smooth.convert("CMYK"), {"quality": 90}),
        ("rgb.png", image, {}),
        ("palette.png", palette, {}),
        ("gray.png", image.convert("L"), {}),
        ("bilevel.png", image.convert("1"), {}),
        ("alpha.png", alpha, {}),
    ]:
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG" if name.endswith("jpg") else "PNG", **options)
        decoded = Image.open(io.BytesIO(buffer.getvalue())).convert("RGB")
        yield {
            "name": name,
            "file": buffer.getvalue().hex(),
            "height": decoded.height,
            "width": decoded.width,
            "pixels": decoded.tobytes().hex(),
        }


def normalized(image):
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    tensor = F.normalize(F.to_dtype(F.to_image(image), torch.float32, scale=True), mean, std)
    return {
        "stage": "normalize,mean=0.485:0.456:0.406,std=0.229:0.224:0.225",
        "values": [round(float(v), 7) for v in tensor.flatten()[::7]],
    }


def mixed():
    """Two images of 1x2 pixels mixed with a weight that the test reads from the labels."""
    images = torch.arange(3 * 4 * 4 * 3, dtype=torch.float32).reshape(3, 3, 4, 4)
    torch.manual_seed(1)
    transform = v2.MixUp(num_classes=3, alpha=1.0)
    out, labels = transform(images, torch.tensor([0, 1, 2]))
    return {"labels": labels.tolist(), "images": out.flatten().tolist()}


def archive(save):
    """The bytes that numpy writes; npy_columns_test.cpp reads them."""
    x = numpy.arange(12, dtype=numpy.float32).reshape(4, 3)
    buffer = io.BytesIO()
    save(buffer, x=x, y=numpy.array([3, 2, 2, 1]), z=numpy.asfortranarray(x))
    return buffer.getvalue().hex()


image = pattern()
json.dump(
    {
        "version": f"torchvision {torchvision.__version__}, PIL {PIL.__version__}",
        "transforms": [exact(stage, result) for stage, result in transforms(image)],
        "normalize": normalized(image),
        "mixup": mixed(),
        "savez": archive(numpy.savez),
        "savez_compressed": archive(numpy.savez_compressed),
        "files": list(files()),
    },
    fp=sys.stdout,
    indent=0,
)
print()
