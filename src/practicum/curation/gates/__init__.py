"""The ladder of gates: what a task has to show before it may train. Each gate has a module of its own."""
