#!/usr/bin/env python3
"""Generates codegen/math_coefficients.h: python3 scripts/fit_math.py > codegen/math_coefficients.h

The polynomials are near-minimax: they interpolate at Chebyshev nodes, in 60 digits (mpmath.chebyfit),
or are the best in a weighted maximum norm (Remez exchange). Each has the lowest degree whose error is
below the bound. The coefficients are rounded to double.
"""
from mpmath import (asin, atan, atanh, chebyfit, cos, erf, erfc, exp, floor, log, lu_solve, matrix, mp, mpf, pi,
                    sin, sinh, sqrt, tanh)

mp.dps = 60
TINY = mpf(10) ** -24


def fit(f, a, b, error_bound):
    for terms in range(2, 40):
        coefficients, error = chebyfit(f, [mpf(a), mpf(b)], terms, error=True)
        if error < error_bound:
            return coefficients[::-1]
    raise SystemExit("no fit")


def fit_weighted(f, weight, a, b, error_bound, points=600):
    """Minimizes the maximum of |f(x) - p(x)| * weight(x) over a grid of [a, b]."""
    grid = [(mpf(a) + b) / 2 - (mpf(b) - a) / 2 * cos(pi * i / points) for i in range(points + 1)]
    values, weights = [f(x) for x in grid], [weight(x) for x in grid]
    for terms in range(2, 40):
        reference = [points * i // terms for i in range(terms + 1)]
        while True:
            system = matrix(terms + 1)
            for row, i in enumerate(reference):
                for k in range(terms):
                    system[row, k] = grid[i] ** k
                system[row, terms] = (-1) ** row / weights[i]
            solution = lu_solve(system, matrix([values[i] for i in reference]))
            errors = [(v - sum(solution[k] * x**k for k in range(terms))) * w
                      for x, v, w in zip(grid, values, weights)]
            peaks = [0]  # the largest error of each sign change
            for i in range(1, points + 1):
                if errors[i] * errors[peaks[-1]] < 0:
                    peaks.append(i)
                elif abs(errors[i]) > abs(errors[peaks[-1]]):
                    peaks[-1] = i
            while len(peaks) > terms + 1:
                peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
            if peaks == reference or len(peaks) < terms + 1:
                break
            reference = peaks
        if max(abs(e) for e in errors) < error_bound:
            return list(solution[:terms])
    raise SystemExit("no fit")


def c_double(x):
    return float(x).hex()


def emit(name, doc, values):
    print(f"/// {doc}")
    print(f"inline constexpr double {name}[] = {{")
    for v in values:
        print(f"    {c_double(v)},")
    print("};")


def series_free(f, at_zero):
    return lambda x: at_zero if abs(x) < TINY else f(x)


def truncated(x, bits):
    scale = mpf(2) ** bits
    return floor(x * scale) / scale


ln2 = log(mpf(2))
print("#pragma once\n\n// Written by scripts/fit_math.py: do not edit.\n\n#include <cstdint>\n")
print("namespace fluid::emit::coefficients {\n")
for suffix, relative in (("32", mpf(2) ** -27), ("64", mpf(2) ** -57)):
    width = "f32" if suffix == "32" else "f64"
    half = ln2 / 2 * mpf("1.001")
    p = fit(series_free(lambda r: (exp(r) - 1 - r) / r**2, mpf(1) / 2), -half, half, relative * 16)
    emit("kExp" + suffix, f"{width} coefficients of (exp(r) - 1 - r) / r^2 as a polynomial in r for |r| <= ln(2)/2.", p)
    top = ((sqrt(mpf(2)) - 1) / (sqrt(mpf(2)) + 1)) ** 2 * mpf("1.001")
    p = fit(series_free(lambda z: (2 * atanh(sqrt(z)) / sqrt(z) - 2) / z, mpf(2) / 3), 0, top,
            relative * 8)
    emit("kLog" + suffix, f"{width} coefficients of (2 atanh(s) - 2 s) / s^3 as a polynomial in s^2 for s = f/(2+f).", p)
    p = fit(series_free(lambda z: (tanh(sqrt(z)) / sqrt(z) - 1) / z, -mpf(1) / 3), 0, mpf("0.3844"),
            relative)
    emit("kTanh" + suffix, f"{width} coefficients of (tanh(x) - x) / x^3 as a polynomial in x^2 for |x| <= 0.62.", p)
    p = fit(series_free(lambda z: (sinh(sqrt(z)) / sqrt(z) - 1) / z, mpf(1) / 6), 0, 1, relative)
    emit("kSinh" + suffix, f"{width} coefficients of (sinh(x) - x) / x^3 as a polynomial in x^2 for |x| <= 1.", p)
    p = fit(series_free(lambda z: (asin(sqrt(z)) / sqrt(z) - 1) / z, mpf(1) / 6), 0, mpf(1) / 4,
            relative)
    emit("kAsin" + suffix, f"{width} coefficients of (asin(x) - x) / x^3 as a polynomial in x^2 for |x| <= 1/2.", p)
    p = fit(series_free(lambda z: (atan(sqrt(z)) / sqrt(z) - 1) / z, -mpf(1) / 3), 0, 1, relative)
    emit("kAtan" + suffix, f"{width} coefficients of (atan(x) - x) / x^3 as a polynomial in x^2 for |x| <= 1.", p)
    p = fit(series_free(lambda z: erf(sqrt(z)) / sqrt(z) - 1, 2 / sqrt(pi) - 1), 0, 1, relative / 4)
    emit("kErf" + suffix, f"{width} coefficients of erf(x) / x - 1 as a polynomial in x^2 for |x| <= 1.", p)
    last = 4 if suffix == "32" else 6
    p = fit_weighted(lambda t: erfc(t + 2) * exp((t + 2) ** 2), lambda t: exp(-(t + 2) ** 2), -1, last - 2,
                     relative * 2)
    emit("kErfc" + suffix, f"{width} coefficients of erfc(x) exp(x^2) as a polynomial in x-2 for 1 <= x <= {last}.", p)
quarter = pi / 4 * mpf("1.001")
for suffix, error_bound in (("32", mpf(2) ** -30), ("64", mpf(2) ** -57)):
    what = "Coefficients for {} in f32:" if suffix == "32" else "f64 coefficients of"
    note = " The polynomial is evaluated in f64." if suffix == "32" else ""
    p = fit(series_free(lambda z: (sin(sqrt(z)) / sqrt(z) - 1) / z, -mpf(1) / 6), 0, quarter**2,
            error_bound)
    emit("kSin" + suffix, f"{what.format('sin')} (sin(x) - x) / x^3 as a polynomial in x^2 for |x| <= pi/4.{note}", p)
    p = fit(series_free(lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2, mpf(1) / 24), 0, quarter**2,
            error_bound)
    emit("kCos" + suffix, f"{what.format('cos')} (cos(x) - 1 + x^2/2) / x^4 as a polynomial in x^2 for |x| <= pi/4.{note}", p)
top = ((sqrt(mpf(2)) - 1) / (sqrt(mpf(2)) + 1)) ** 2 * mpf("1.001")
p = fit(lambda z: mpf(2) / 5 if abs(z) < mpf(10) ** -12 else
        (2 * atanh(sqrt(z)) / sqrt(z) - 2 - 2 * z / 3) / z**2, 0, top, mpf(2) ** -54)
emit("kLogTail64", "f64 coefficients of (2 atanh(s) - 2 s - 2 s^3/3) / s^5 as a polynomial in s^2.", p)

print("\n/// ln 2 as a sum of two numbers. The product of a binary exponent and the first number is exact, with or without fma.")
for name, bits in (("32", 15), ("64", 32)):
    high = truncated(ln2, bits)
    print(f"inline constexpr double kLn2High{name} = {c_double(high)};")
    print(f"inline constexpr double kLn2Low{name} = {c_double(ln2 - high)};")
print("\n/// 1 / ln 2 as a sum of two numbers. The first has 12 (f32) or 32 (f64) significant bits.")
for name, bits in (("32", 11), ("64", 31)):
    high = truncated(1 / ln2, bits)
    print(f"inline constexpr double kLog2EHigh{name} = {c_double(high)};")
    print(f"inline constexpr double kLog2ELow{name} = {c_double(1 / ln2 - high)};")
print("\n/// pi/2 as a sum of two numbers, of which the first is an f32.")
high = mpf(float(floor(pi / 2 * 2**23 + mpf(1) / 2))) / 2**23
print(f"inline constexpr double kHalfPi32[] = {{{c_double(high)}, {c_double(pi / 2 - high)}}};")
print("\n/// pi/2 as a sum of three doubles.")
print("inline constexpr double kHalfPi[] = {", end="")
rest, parts = pi / 2, []
for _ in range(3):
    part = mpf(float(rest))
    rest -= part
    parts.append(c_double(part))
print(", ".join(parts) + "};")
two_thirds = mpf(2) / 3
print("\n/// 2/3 as a sum of two doubles.")
high = mpf(float(two_thirds))
print(f"inline constexpr double kTwoThirds[] = {{{c_double(high)}, {c_double(two_thirds - high)}}};")

words = 20
mp.prec = 64 * words + 128
value = int(floor(2 / pi * mpf(2) ** (64 * words)))
print("\n/// The bits of 2/pi after the binary point, preceded by a word of zeros.")
print("inline constexpr uint64_t kTwoOverPi[] = {\n    0x0,")
for i in range(words):
    print(f"    {hex(value >> 64 * (words - 1 - i) & (2**64 - 1))},")
print("};\n\n}  // namespace fluid::emit::coefficients")
