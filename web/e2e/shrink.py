"""Writes the dashboard's pictures with 256 colours each, which halves them and is not seen. Needs Pillow."""

import sys
from pathlib import Path

from PIL import Image

for path in sorted(Path(sys.argv[1]).glob("dashboard-*.png")):
    picture = Image.open(path).convert("RGB")
    picture.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size // 1024} kB")
