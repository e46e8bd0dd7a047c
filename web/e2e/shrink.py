"""Reduces the dashboard's pictures to 256 colours each, a third of the bytes. Needs Pillow.

The most frequent colours stay exact; the others become the nearest colour of a small palette.
"""

import sys
from pathlib import Path

from PIL import Image

EXACT = 160


def reduce_colours(picture: Image.Image) -> Image.Image:
    """Returns the picture with 256 colours: the `EXACT` most frequent ones, and a palette for the others."""
    counts = sorted(picture.getcolors(picture.width * picture.height), reverse=True)
    rest = Image.new("RGB", (max(1, len(counts) - EXACT), 1))
    rest.putdata([colour for _, colour in counts[EXACT:]] or [(0, 0, 0)])
    few = rest.quantize(256 - EXACT, Image.Quantize.MEDIANCUT, kmeans=3).getpalette()
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for _, colour in counts[:EXACT] for part in colour] + few[: 3 * (256 - EXACT)])
    return picture.quantize(palette=palette, dither=Image.Dither.NONE)


for path in sorted(Path(sys.argv[1]).glob("dashboard-*.png")):
    reduce_colours(Image.open(path).convert("RGB")).save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size // 1024} kB")
