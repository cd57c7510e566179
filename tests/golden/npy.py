"""Arrays of NumPy in both orders, of integers that Fluid widens.

    python tests/golden/npy.py > tests/golden/npy.json
"""

import io
import json

import numpy

CASES = [("<i2", -32768, 32767), ("<u2", 0, 65535), ("<u4", 0, 4294967295), ("<f4", -1.5, 2.25)]


def saved(array):
    file = io.BytesIO()
    numpy.save(file, array)
    return file.getvalue().hex()


def case(descr, low, high, order):
    values = numpy.arange(24).astype(descr)
    values[0], values[5] = low, high
    array = numpy.array(values.reshape(3, 2, 4), order=order)
    return {"descr": descr, "order": order, "file": saved(array), "values": array.flatten().tolist()}


cases = [json.dumps(case(*c, order)) for c in CASES for order in "CF"]
print('{"made_by": "tests/golden/npy.py", "numpy": "%s", "cases": [\n%s]}' % (numpy.__version__, ",\n".join(cases)))
