"""The command line."""

from __future__ import annotations


def main() -> None:
    """Entry point of the `practicum` command."""
    from practicum.cli.app import run

    run()
