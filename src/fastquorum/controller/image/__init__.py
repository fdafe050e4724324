"""The image of a metadata log, made from records and written as records again. Immutable values, no effects."""

from fastquorum.controller.image.image import EMPTY, Image

__all__ = ["EMPTY", "Image"]
