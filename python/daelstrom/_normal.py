# SPDX-License-Identifier: Apache-2.0
"""Normal deviates by the inverse of the normal distribution, of operations alone that every device rounds alike.

M. J. Wichura, "Algorithm AS 241: The Percentage Points of the Normal Distribution", Applied Statistics 37 (1988),
PPND16: rational functions, accurate to about one part in 10^16.
"""

from __future__ import annotations

from typing import Any

from ._arrays import Arrays

# From the highest power down.
_CENTRE = (
    (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
     13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608),
    (5226.495278852854561, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
     5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0),
)  # fmt: skip
_NEAR = (
    (7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
     3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
     0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0),
)  # fmt: skip
_FAR = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093,
     0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772),
    (2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
     0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1.0),
)  # fmt: skip

_LN2 = 0.6931471805599453094
_SQRT2 = 1.4142135623730950488
_LOG_TERMS = 12


def _polynomial(coefficients: tuple[float, ...], x: Any) -> Any:
    value = x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        value = value * x + coefficient
    return value


def _ratio(coefficients: tuple[tuple[float, ...], tuple[float, ...]], x: Any) -> Any:
    return _polynomial(coefficients[0], x) / _polynomial(coefficients[1], x)


def logarithm(arrays: Arrays, x: Any) -> Any:
    """Of positive, normal numbers: log(m * 2^e) = e log 2 + 2 artanh((m - 1) / (m + 1)). The libraries' own
    differ in the last bit from one device to the next."""
    bits = arrays.view(x, "int64")
    exponent = (bits >> 52) - 1023
    mantissa = arrays.view((bits & 0xFFFFFFFFFFFFF) | (1023 << 52), "float64")
    large = mantissa > _SQRT2
    mantissa = arrays.where(large, mantissa * 0.5, mantissa)
    exponent = arrays.cast(arrays.where(large, exponent + 1, exponent), "float64")
    s = (mantissa - 1.0) / (mantissa + 1.0)
    squared = s * s
    series = squared * (1.0 / (2 * _LOG_TERMS + 1))
    for term in range(_LOG_TERMS - 1, 0, -1):
        series = (series + 1.0 / (2 * term + 1)) * squared
    return exponent * _LN2 + (s + s * series) * 2.0


def square_root(arrays: Arrays, x: Any) -> Any:
    """By Newton's iteration from half the exponent: torch's own, on CPUs, is not always rounded as IEEE 754 has it."""
    root = arrays.view((arrays.view(x, "int64") >> 1) + (1023 << 51), "float64")
    for _ in range(4):  # from 6% to 2 parts in 10^3, 10^6, 10^12, and all digits
        root = (root + x / root) * 0.5
    return root


def normal_of_bits(arrays: Arrays, bits: Any) -> Any:
    """Standard normal deviates from 64-bit numbers, of which each uses 52 bits."""
    # In the middle of 2^52 equal parts of the interval from 0 to 1, less a half: never its ends.
    q = (arrays.cast((bits >> 12) & 0xFFFFFFFFFFFFF, "float64") + 0.5) * 2.0**-52 - 0.5
    magnitude = arrays.where(q < 0.0, -q, q)
    centre = q * _ratio(_CENTRE, 0.180625 - q * q)
    far = magnitude > 0.425
    if not arrays.gathers:
        return arrays.where(far, _outer(arrays, q, magnitude), centre)
    places = arrays.indices(far)
    centre[places] = _outer(arrays, q[places], magnitude[places])
    return centre


def _outer(arrays: Arrays, q: Any, magnitude: Any) -> Any:
    tail = square_root(arrays, -logarithm(arrays, 0.5 - magnitude))
    outer = arrays.where(tail <= 5.0, _ratio(_NEAR, tail - 1.6), _ratio(_FAR, tail - 5.0))
    return arrays.where(q < 0.0, -outer, outer)
