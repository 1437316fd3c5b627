"""What a column of images looks like, gathered block by block: the evidence from which `draft` declares its size."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from understudy.errors import DataError
from understudy.schema import Image
from understudy.schema.columns import MOST_PIXELS_A_SIDE
from understudy.table.pictures import COLOUR, NOT_AN_IMAGE, image_codec


@dataclass
class ImageProfile:
    """Sizes seen so far, whether any pixel has a colour, and how many images cannot be read."""

    rows: int = 0
    sizes: set[tuple[int, int]] = field(default_factory=set)
    coloured: bool = False
    unreadable: int = 0

    def add(self, cells: pa.Array) -> None:
        self.rows += len(cells)
        height, width = (cells.field(side).to_numpy() for side in ("height", "width"))
        self.sizes |= {(int(h), int(w)) for h, w in np.unique(np.column_stack([height, width]), axis=0) if h}
        if len(self.sizes) == 1 and not self.coloured:  # several are refused in the end
            ((tall, wide),) = self.sizes
            if max(tall, wide) <= MOST_PIXELS_A_SIDE:
                self.coloured = COLOUR in image_codec(Image(height=tall, width=wide)).encode(cells).bad
        self.unreadable += int(np.count_nonzero(height == 0))

    def declared(self, label: str, name: str) -> Image:
        """The one size that all images have, or a refusal that says how many sizes there are."""
        where = f"{label}: column {name!r}"
        if self.unreadable:
            raise DataError(f"{where}: {self.unreadable} cells {NOT_AN_IMAGE}; mend them first")
        if len(self.sizes) > 1:
            raise DataError(f"{where}: the images have {len(self.sizes)} different sizes; resize them to one first")
        ((height, width),) = self.sizes
        if max(height, width) > MOST_PIXELS_A_SIDE:
            raise DataError(f"{where}: the images are wider or higher than {MOST_PIXELS_A_SIDE} pixels; resize them")
        return Image(height=height, width=width, channels=3 if self.coloured else 1, source="data")
