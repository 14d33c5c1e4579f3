"""Making tasks and deciding which may be used: synthesis, mining, gates, decontamination, difficulty, review, releases.

Stages exchange frozen records; nothing here knows how a policy is trained.
"""
