"""The licence of a project, as an SPDX identifier.

Owns: `licence_of`.
Invariant: a licence is named only where the project states it in its metadata or carries a text that is known; nothing
is guessed from anything else.
Must not know: which licences allow what.
"""

from __future__ import annotations

import re

from practicum.curation.projects.metadata import Metadata
from practicum.records.tree import Tree

_FILE = re.compile(r"(?:LICEN[CS]ES?|COPYING|UNLICENSE)(?:[.-][A-Za-z0-9.-]+)?", re.IGNORECASE)
_EXPRESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*(?: (?:AND|OR|WITH) [A-Za-z0-9][A-Za-z0-9.+-]*)*")
_SPDX = (
    *("MIT", "MIT-0", "BSD-2-Clause", "BSD-3-Clause", "0BSD", "Apache-2.0", "ISC", "Unlicense", "Zlib", "PSF-2.0"),
    *("Python-2.0", "MPL-2.0", "CC0-1.0", "EUPL-1.2", "BSL-1.0", "WTFPL", "Artistic-2.0", "EPL-2.0", "ZPL-2.1"),
    *(f"{name}-{kind}" for name in ("GPL-2.0", "GPL-3.0", "LGPL-2.1", "LGPL-3.0", "AGPL-3.0")
      for kind in ("only", "or-later")),
)  # fmt: skip
_KNOWN = {name.lower(): name for name in _SPDX}
# What projects write instead, in lower case.
_STATED = {
    "mit license": "MIT",
    "the mit license": "MIT",
    "the mit license (mit)": "MIT",
    "mit licence": "MIT",
    "expat": "MIT",
    "apache 2.0": "Apache-2.0",
    "apache 2": "Apache-2.0",
    "apache-2": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache software license 2.0": "Apache-2.0",
    "new bsd": "BSD-3-Clause",
    "new bsd license": "BSD-3-Clause",
    "modified bsd license": "BSD-3-Clause",
    "3-clause bsd": "BSD-3-Clause",
    "3-clause bsd license": "BSD-3-Clause",
    "bsd 3-clause": "BSD-3-Clause",
    "bsd 3-clause license": "BSD-3-Clause",
    "bsd-3": "BSD-3-Clause",
    "simplified bsd": "BSD-2-Clause",
    "bsd 2-clause": "BSD-2-Clause",
    "bsd 2-clause license": "BSD-2-Clause",
    "isc license": "ISC",
    "isc license (iscl)": "ISC",
    "the unlicense": "Unlicense",
    "psf": "PSF-2.0",
    "mpl 2.0": "MPL-2.0",
    "gplv2": "GPL-2.0-only",
    "gplv3": "GPL-3.0-only",
    "gplv3+": "GPL-3.0-or-later",
    "gpl-3.0": "GPL-3.0-only",
    "gpl-2.0": "GPL-2.0-only",
    "lgplv3": "LGPL-3.0-only",
    "lgplv3+": "LGPL-3.0-or-later",
    "lgpl-3.0": "LGPL-3.0-only",
    "agpl-3.0": "AGPL-3.0-only",
}
_CLASSIFIERS = {
    "MIT License": "MIT",
    "MIT No Attribution License (MIT-0)": "MIT-0",
    "Apache Software License": "Apache-2.0",
    "ISC License (ISCL)": "ISC",
    "The Unlicense (Unlicense)": "Unlicense",
    "Python Software Foundation License": "PSF-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "GNU General Public License v2 (GPLv2)": "GPL-2.0-only",
    "GNU General Public License v2 or later (GPLv2+)": "GPL-2.0-or-later",
    "GNU General Public License v3 (GPLv3)": "GPL-3.0-only",
    "GNU General Public License v3 or later (GPLv3+)": "GPL-3.0-or-later",
    "GNU Lesser General Public License v3 (LGPLv3)": "LGPL-3.0-only",
    "GNU Lesser General Public License v3 or later (LGPLv3+)": "LGPL-3.0-or-later",
    "GNU Affero General Public License v3": "AGPL-3.0-only",
    "zlib/libpng License": "Zlib",
}
# Words that stand in a licence's own text, and in no other's that is asked about before it.
_TEXTS = (
    ("GNU AFFERO GENERAL PUBLIC LICENSE Version 3", "AGPL-3.0-only"),
    ("GNU LESSER GENERAL PUBLIC LICENSE Version 3", "LGPL-3.0-only"),
    ("GNU LESSER GENERAL PUBLIC LICENSE Version 2.1", "LGPL-2.1-only"),
    ("GNU GENERAL PUBLIC LICENSE Version 3", "GPL-3.0-only"),
    ("GNU GENERAL PUBLIC LICENSE Version 2", "GPL-2.0-only"),
    ("Apache License Version 2.0, January 2004", "Apache-2.0"),
    ("Mozilla Public License Version 2.0", "MPL-2.0"),
    ("Mozilla Public License, version 2.0", "MPL-2.0"),
    ("This is free and unencumbered software released into the public domain", "Unlicense"),
    ("CC0 1.0 Universal", "CC0-1.0"),
    ("PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2", "PSF-2.0"),
    ("Permission to use, copy, modify, and/or distribute this software for any purpose", "ISC"),
    ("Permission to use, copy, modify, and distribute this software for any purpose", "ISC"),
    ("Permission is hereby granted, free of charge, to any person obtaining a copy", "MIT"),
)
_BSD = "Redistribution and use in source and binary forms, with or without modification"
_BSD_3 = re.compile(r"may (?:not )?be used to endorse or promote products|names? of (?:the|its) .{0,80}contributors")


def licence_of(metadata: Metadata, tree: Tree) -> str | None:
    """The SPDX identifier that the metadata states, else that of a licence's text; None where neither is known."""
    stated = " ".join(metadata.licence.split())
    if stated and len(stated) < 200:
        if found := _KNOWN.get(stated.lower()) or _STATED.get(stated.lower()):
            return found
        if _EXPRESSION.fullmatch(stated) and all(part.lower() in _KNOWN for part in _names(stated)):
            return stated
    named = [line.rpartition(" :: ")[2] for line in metadata.classifiers if line.startswith("License :: ")]
    found_by_name = {_CLASSIFIERS[name] for name in named if name in _CLASSIFIERS}
    if len(found_by_name) == 1:
        return found_by_name.pop()
    for path in sorted(tree, key=lambda name: (name.count("/"), name)):
        folder, _, name = path.rpartition("/")
        if folder in ("", "LICENSES", "licenses") and _FILE.fullmatch(name):
            text = tree[path].data.decode("utf-8", "replace")
            if found := _by_text(text):
                return found
    return _by_text(metadata.licence) if len(stated) >= 200 else None


def _names(expression: str) -> list[str]:
    return [word for word in expression.split() if word not in ("AND", "OR", "WITH")]


def _by_text(text: str) -> str | None:
    plain = " ".join(re.sub(r"^[ \t]*[#*]+", "", text, flags=re.MULTILINE).split())
    for words, name in _TEXTS:
        if words.lower() in plain.lower():
            return name
    if _BSD.lower() in plain.lower():
        return "BSD-3-Clause" if _BSD_3.search(plain) else "BSD-2-Clause"
    return None
