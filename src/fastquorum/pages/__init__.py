"""One self-contained HTML page of figures, and the charts on it: drawn from data, by itself.

A page is a value (`page.Page`): cards, warnings, sections of prose, tables and charts (`chart`), and the report that
all of it was made from. `document` draws it as one file which fetches nothing, needs no script to be read, and has that
report inside. What is shown, and what it means, is the business of whoever makes the page.
"""

from fastquorum.pages.html_file import document, report_of, write_page
from fastquorum.pages.page import Card, Facts, Lines, Page, Prose, Section, Table

__all__ = ["Card", "Facts", "Lines", "Page", "Prose", "Section", "Table", "document", "report_of", "write_page"]
