"""A task family for small language models: functions of one to three lines, to be written or repaired in one turn."""

from practicum.tasks.functions.generate import FunctionsSpec, generate_functions

__all__ = ["FunctionsSpec", "generate_functions"]
