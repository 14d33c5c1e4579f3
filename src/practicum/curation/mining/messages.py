"""A commit's message without what would lead astray or give the fix away.

Owns: `cleaned`.
Invariant: what is left says what is wrong or wanted: nothing leads outside the workspace (issues, hashes, addresses,
people), no code of the fix is in it, and no sentence that tells how it is done.
Must not know: git, tests.
"""

from __future__ import annotations

import re

from practicum.curation.mining.withholding import Withheld

_TRAILER = re.compile(
    r"(?:signed-off-by|co-authored-by|co-developed-by|reviewed-by|acked-by|tested-by|reported-by|suggested-by|change-id"
    r"|cc|git-svn-id|pr-url|refs?|closes|fixes|resolves|see(?: also)?|link|bug|issue|merge[sd]?|via|thanks to"
    r"|assisted-by|generated[- ]by|[a-z]+(?:-[a-z]+)+)\s*: .*",
    re.IGNORECASE,
)
_FORMAL = re.compile(
    r"\(cherry picked from .*|this reverts commit .*|merge (?:branch|pull request|remote).*|conflicts:.*"
    r"|diff --git .*|index [0-9a-f]+\.\..*|@@ .*|(?:\+\+\+|---) .*|[+-](?:\s{2,}|\t)\S.*|\[(?:skip ci|ci skip)\]",
    re.IGNORECASE,
)
_ISSUE_WORDS = (
    r"(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?|refs?|references|see|related to|addresses|for|issue|bug|pr|pull request)"
)
_ISSUES = re.compile(
    rf"\s*[\[(]?\s*(?:\b{_ISSUE_WORDS}\b[:\s]*)*(?:[\w.-]+/[\w.-]+)?(?:#|\bgh-)\d+"
    r"(?:\s*(?:,|and|&)\s*(?:#|gh-)\d+)*\s*[\])]?",
    re.IGNORECASE,
)
_ISSUE_ALONE = re.compile(r"\s*\(?\b(?:issue|bug|pr|ticket)s?[ _#-]*\d+\b\)?", re.IGNORECASE)
_URL = re.compile(r"[<(\[]?https?://[^\s>)\]]+[>)\]]?")
_HASH = re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b")
_PEOPLE = re.compile(r"<?\b[\w.+-]+@[\w-]+\.[\w.-]+>?")  # "@name" may as well be a decorator
_GAP = "\0"  # where a reference was
# A short clause that held little but a reference (", follow-up on #3"), and words that led to one.
_LEFT_OVER = re.compile(r"\s*[,;(]\s*(?:[\w'-]+\s+){0,3}\0+(?:\s*[\w'-]+)?[\s\0]*\)?(?=\s*(?:[,;.!?)\n]|$))")
_LEADING_TO = re.compile(
    r"(?:\b(?:since|on|in|to|of|from|with|by|see(?: also)?|at|for|per|via|cf\.?|as|follow-?up)\s*)\0", re.IGNORECASE
)
_NOTHING = re.compile(
    r"(?:wip|fix(?:e[sd]|ing)?|fix(?:ed)? (?:the )?(?:tests?|bugs?|lint|build|typos?)|tests?|updates?"
    r"|add(?:ed)? (?:more )?tests?|cleanup|clean up|refactor(?:ing)?|misc|changes|minor(?: changes)?|oops"
    r"|(?:address|respond to|apply|incorporate)(?:ed|ing)? (?:the |pr |code |reviewe?r?'?s? )*"
    r"(?:comments?|feedback|suggestions?|review)|(?:pr |code |review )*(?:comments?|feedback|nits?)"
    r"|(?:run |fix |appease )*(?:lint(?:ing|er|ers)?|flake8|black|ruff|mypy|isort|pep ?8|format(?:ting)?|style)"
    r"|reformat(?:ted)?|typos?|more tests?|rebase|merge (?:master|main|upstream)|bump version|review|\W*)[.!]?",
    re.IGNORECASE,
)
# How a sentence about the work, and not about what it is for, begins.
_HOW = re.compile(
    r"(?:(?:this|the) (?:change|commit|patch|fix|pr|diff|new \w+|implementation)\b|(?:also|instead|now|then|so|we|i),? "
    r"|(?:instead|now)\b|(?:we|i)(?: now|'ve|'ll)?\b"
    r"|(?:also )?(?:add|adds|added|use|uses|used|using|replace|replaces|replaced|change|changes|changed|remove|removes"
    r"|removed|move|moves|moved|collect|anchor|switch|refactor|rename|introduce|make|makes|made|update|updates|updated"
    r"|drop|drops|dropped|convert|extract|wrap|check|call|pass|return|set|store|keep|bump|verified|tested|include|includes"
    r"|cover|covers|extend|extends|rewrite|rework|simplify|split|swap|apply|guard|match|skip|track|teach|treat|put|let|compare"
    r"|correct|forward|adjust|implement|define|inline|restore|initiali[sz]e|reset|cache|avoid|catch|raise|reorder"
    r"|fixed by|fix by|fixes by|by)\b)",
    re.IGNORECASE,
)

# A definition, as where somebody pasted the new file: no description needs it, and it may be all of a short fix.
_DEFINITION = re.compile(r"^\s*(?:async\s+)?(?:def|class)\s+\w+.*:\s*(?:#.*)?$", re.MULTILINE)


def cleaned(subject: str, body: str, withheld: Withheld) -> tuple[str, str]:
    """Title and text of a commit's message, without trailers, references, hashes, people and code of the fix."""
    title = " ".join(_without_references(re.sub(r"^\s*(?:\[[^\]]*\]|\*+|-)\s*", "", subject)).split()).strip(" .,:;-")
    if _NOTHING.fullmatch(title) or len(title.split()) < 2 or withheld.told_by(title):
        title = ""
    lines = [line for line in body.replace("\r", "").split("\n") if not _is_formal(line) and not _is_noise(line)]
    blocks = [
        block for block in re.split(r"\n\s*\n", "\n".join(lines)) if block.strip() and not _DEFINITION.search(block)
    ]
    kept = [told for block in blocks if (told := _block(block, withheld))]
    while kept and kept[-1].rstrip().endswith(":"):  # what it announces is withheld
        kept.pop()
    text = "\n\n".join(kept).strip()
    return title[:1].upper() + title[1:], "" if _NOTHING.fullmatch(text) else text


def _is_formal(line: str) -> bool:
    return any(pattern.fullmatch(text) for pattern in (_TRAILER, _FORMAL) for text in (line, line.strip()))


def _is_noise(line: str) -> bool:
    """Whether a line, as a squashed commit leaves it, says nothing: `* lint`."""
    return bool(line.strip()) and bool(_NOTHING.fullmatch(re.sub(r"^\s*(?:[-*+•]|\d+[.)])\s+", "", line).strip()))


def _block(block: str, withheld: Withheld) -> str:
    """What may be told of a paragraph, a list or a piece of code."""
    lines = block.split("\n")
    if all(line.startswith(("    ", "\t", ">>>")) for line in lines) or lines[0].lstrip().startswith("```"):
        referring = any(pattern.search(block) for pattern in (_URL, _HASH, _PEOPLE))
        return "" if referring or any(withheld.told_by(line) for line in lines) else block.strip("\n")
    items = re.split(r"\n(?=\s*(?:[-*+•]|\d+[.)])\s)", block)
    told = [_prose(item, withheld) for item in items]
    return "\n".join(item for item in told if item)


def _prose(text: str, withheld: Withheld) -> str:
    """The sentences that say what is wrong or wanted, not how it is done."""
    plain = " ".join(_without_references(text).split())
    bullet = re.match(r"(?:[-*+•]|\d+[.)])\s+", plain)
    mark = bullet[0] if bullet else ""
    sentences = re.split(r"(?<=[.!?])\s+(?=[A-Z`\"'(])", plain.removeprefix(mark))
    kept = [
        each for each in sentences if re.search(r"\w", each) and not _HOW.match(each) and not withheld.told_by(each)
    ]
    return f"{mark}{' '.join(kept)}" if kept else ""


def _without_references(text: str) -> str:
    """A line or a sentence, in which what referred to something is a gap of one blank."""
    for pattern in (_URL, _ISSUES, _ISSUE_ALONE, _HASH, _PEOPLE):
        text = pattern.sub(_GAP, text)
    before = ""
    while before != text:
        before = text
        text = _LEFT_OVER.sub(" ", text)
        text = _LEADING_TO.sub(_GAP, text)
    text = text.replace(_GAP, " ")
    return re.sub(r" +([,.;:!?)])", r"\1", re.sub(r"\( +\)|\[ +\]", " ", text))
