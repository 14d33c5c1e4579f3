"""Task sets on disk: formats, importers, the built-in task family. Knows no sandboxes."""
