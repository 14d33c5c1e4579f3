"""Finding tasks that are the same work, or too close: inside a set, between splits, against protected sets.

Public here: `near_duplicates` and `contamination` (both give `{task id: [Match]}`), `survey` (everything at once, for
sets of any size), `Match`, `Rules` (the documented thresholds) and `TaskFolders` (a task set read one task at a time).
Stages: facets (text of a task) → features (hashes) → store (on disk) → boilerplate (dropped) → minhash (candidates) →
pairs (verified exactly) → search (what it means for the tasks).
"""

from practicum.curation.similarity.folders import JoinedFolders, TaskFolders
from practicum.curation.similarity.matches import Match, Rules
from practicum.curation.similarity.search import Survey, contamination, near_duplicates, survey

__all__ = ["JoinedFolders", "Match", "Rules", "Survey", "TaskFolders", "contamination", "near_duplicates", "survey"]
