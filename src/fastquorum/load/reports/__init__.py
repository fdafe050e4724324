"""Results for people: pages, charts, files, histories, comparisons."""
