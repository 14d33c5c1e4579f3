"""The built-in task family: small Python projects with one injected bug each, made from templates by seed."""

from practicum.tasks.quickstart.generate import FamilySpec, generate_family

__all__ = ["FamilySpec", "generate_family"]
