"""Draws the digits that the examples train on, and writes them to examples/data/digits.npz.

Each digit is a few strokes in the unit square. An image bends, turns, scales, slants, shifts and thickens them at
random, drops a little ink and adds specks. The same seed gives the same file. Run as `python -m tools.make_digits`.
"""

from __future__ import annotations

import itertools
import math
import sys
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

Points: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Image: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
Stroke: TypeAlias = list[tuple[float, float]]

SIDE = 12
TRAINING_COUNT, TEST_COUNT = 2000, 500
GREY_LEVELS = 15


def arc(centre: tuple[float, float], radii: tuple[float, float], start: float, end: float) -> Stroke:
    """Points along an ellipse from one angle to another, in degrees, clockwise from three o'clock."""
    angles = [math.radians(start + (end - start) * step / 10) for step in range(11)]
    return [(centre[0] + radii[0] * math.cos(a), centre[1] + radii[1] * math.sin(a)) for a in angles]


STROKES: dict[int, list[Stroke]] = {
    0: [arc((0.5, 0.5), (0.26, 0.4), 0, 360)],
    1: [[(0.34, 0.26), (0.54, 0.1), (0.54, 0.9)]],
    2: [[*arc((0.5, 0.32), (0.25, 0.22), 190, 390), (0.24, 0.9), (0.78, 0.9)]],
    3: [arc((0.46, 0.3), (0.26, 0.2), 200, 450), arc((0.46, 0.7), (0.29, 0.2), 270, 520)],
    4: [[(0.66, 0.9), (0.66, 0.1), (0.2, 0.64), (0.84, 0.64)]],
    5: [[(0.74, 0.1), (0.32, 0.1), (0.29, 0.45), *arc((0.47, 0.65), (0.28, 0.25), 250, 500)]],
    6: [[(0.68, 0.12), *arc((0.5, 0.55), (0.28, 0.35), 235, 180)], arc((0.5, 0.67), (0.26, 0.22), 0, 360)],
    7: [[(0.22, 0.1), (0.78, 0.1), (0.42, 0.9)]],
    8: [arc((0.5, 0.3), (0.22, 0.19), 0, 360), arc((0.5, 0.7), (0.26, 0.21), 0, 360)],
    9: [arc((0.5, 0.34), (0.25, 0.23), 0, 360), [(0.75, 0.34), (0.72, 0.6), (0.56, 0.9)]],
}


def distort(strokes: list[Stroke], random: np.random.Generator) -> list[Points]:
    """Apply one random affine map to all strokes, and bend each of them a little."""
    turn, slant = random.normal(0, 0.13), random.normal(0, 0.14)
    stretch = random.normal(1.0, 0.08, size=2)
    rotation = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
    matrix = rotation @ np.array([[1.0, slant], [0.0, 1.0]]) @ np.diag(stretch)
    shift = random.normal(0, 0.045, size=2)
    bend, phase = random.normal(0, 0.03, size=2), random.uniform(0, 2 * math.pi, size=2)
    distorted = []
    for stroke in strokes:
        points = np.array(stroke) - 0.5
        points = points + bend * np.sin(5.0 * points[:, ::-1] + phase)
        distorted.append(points @ matrix.T + 0.5 + shift)
    return distorted


def distance_to_segment(pixels: Points, start: Points, end: Points) -> Points:
    """The distance of every pixel centre from the segment between two points."""
    along = end - start
    length = max(float(along @ along), 1e-12)
    nearest = np.clip((pixels - start) @ along / length, 0.0, 1.0)
    offsets = pixels - (start + nearest[:, None] * along)
    distance: Points = np.hypot(offsets[:, 0], offsets[:, 1])
    return distance


def draw(digit: int, random: np.random.Generator) -> Image:
    """Draw one image: SIDE x SIDE bytes, 0 for paper and 255 for ink."""
    axis = (np.arange(SIDE) + 0.5) / SIDE
    pixels = np.stack(np.meshgrid(axis, axis, indexing="xy"), axis=-1).reshape(-1, 2)
    distance = np.full(len(pixels), np.inf)
    for points in distort(STROKES[digit], random):
        for start, end in itertools.pairwise(points):
            distance = np.minimum(distance, distance_to_segment(pixels, start, end))
    thickness = random.uniform(0.035, 0.075)
    ink = np.clip(1.0 - (distance - thickness) * SIDE, 0.0, 1.0) * random.uniform(0.75, 1.0)
    ink *= random.uniform(size=ink.shape) > 0.04
    specks = random.uniform(size=ink.shape) < 0.02
    ink = np.maximum(ink, specks * random.uniform(0.2, 0.7, size=ink.shape))
    levels: Image = (np.round(ink * GREY_LEVELS) * (255 // GREY_LEVELS)).astype(np.uint8)
    return levels.reshape(SIDE, SIDE)


def make_digits(seed: int, count: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return `count` images and their labels, in random order."""
    random = np.random.default_rng(seed)
    labels = random.permutation(np.arange(count) % 10).astype(np.uint8)
    return np.stack([draw(int(label), random) for label in labels]), labels


def main() -> int:
    """Write the data set."""
    path = Path(__file__).parent.parent / "examples" / "data" / "digits.npz"
    training_images, training_labels = make_digits(1, TRAINING_COUNT)
    test_images, test_labels = make_digits(2, TEST_COUNT)
    np.savez_compressed(
        path,
        training_images=training_images,
        training_labels=training_labels,
        test_images=test_images,
        test_labels=test_labels,
    )
    print(f"{path}: {path.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
