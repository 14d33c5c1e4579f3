"""Whether a task's verdicts can be trusted: attacks, wrong mutants, right variants, changed conditions."""
