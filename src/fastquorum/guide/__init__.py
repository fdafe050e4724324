"""The guide that travels with the package: chapters in Markdown, and the site that is made of them."""

from fastquorum.guide.chapters import Chapter, all_chapters, chapter_of, names

__all__ = ["Chapter", "all_chapters", "chapter_of", "names"]
