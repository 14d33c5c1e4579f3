"""Model judges: an opinion about work that is already decided.

Owns: what a judge is shown and how its answer is read (`prompt`), asking it (`model`).
Invariant: a judge never decides an outcome. It sees the final files and the verifier's facts, never what the attempt
says about itself; it may only answer by schema; an outage or an answer that is none is no opinion, never a 0.
Must not know: boxes, rewards.
"""
