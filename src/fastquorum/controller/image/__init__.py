"""The image of a metadata log, and how records become it and it records again. Immutable values, no effects."""

from fastquorum.controller.image.image import EMPTY, Image

__all__ = ["EMPTY", "Image"]
