"""The guide that travels with the package: chapters in Markdown, and the site that is made of them."""

from fastquorum.guide.chapters import CHAPTERS, Chapter, chapter_of, names

__all__ = ["CHAPTERS", "Chapter", "chapter_of", "names"]
