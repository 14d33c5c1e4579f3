"""`python -m practicum`: the same as the `practicum` command."""

from __future__ import annotations

from practicum.cli import main

if __name__ == "__main__":
    main()
