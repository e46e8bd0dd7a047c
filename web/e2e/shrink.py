"""Writes the dashboard's pictures with 256 colours each, which is a third of the bytes. Needs Pillow.

Colours of many pixels stay what they are; the others become the nearest of a few.
"""

import sys
from pathlib import Path

from PIL import Image

EXACT = 160


def shrunk(picture: Image.Image) -> Image.Image:
    counts = sorted(picture.getcolors(picture.width * picture.height), reverse=True)
    rest = Image.new("RGB", (max(1, len(counts) - EXACT), 1))
    rest.putdata([colour for _, colour in counts[EXACT:]] or [(0, 0, 0)])
    few = rest.quantize(256 - EXACT, Image.Quantize.MEDIANCUT, kmeans=3).getpalette()
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for _, colour in counts[:EXACT] for part in colour] + few[: 3 * (256 - EXACT)])
    return picture.quantize(palette=palette, dither=Image.Dither.NONE)


for path in sorted(Path(sys.argv[1]).glob("dashboard-*.png")):
    shrunk(Image.open(path).convert("RGB")).save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size // 1024} kB")
