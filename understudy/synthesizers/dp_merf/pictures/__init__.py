"""DP-MERF on images: noisy embeddings of pixels by class, released once, and a generator that matches them."""

from understudy.synthesizers.dp_merf.pictures.method import check, planned, train
from understudy.synthesizers.dp_merf.pictures.released import PictureReleased

__all__ = ["PictureReleased", "check", "planned", "train"]
