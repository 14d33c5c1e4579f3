"""A licence is named where a project states one, and nowhere else."""

from __future__ import annotations

import pytest

from practicum.curation.projects.licences import licence_of
from practicum.curation.projects.metadata import Metadata
from practicum.records.tree import File

BSD = "Redistribution and use in source and binary forms, with or without\n   modification, are permitted"


@pytest.mark.parametrize(
    ("metadata", "text", "wanted"),
    [
        (Metadata(licence="MIT"), "", "MIT"),
        (Metadata(licence="mit license"), "", "MIT"),
        (Metadata(licence="MIT OR Apache-2.0"), "", "MIT OR Apache-2.0"),
        (Metadata(classifiers=("License :: OSI Approved :: Apache Software License",)), "", "Apache-2.0"),
        (Metadata(classifiers=("License :: OSI Approved :: BSD License",)), BSD, "BSD-2-Clause"),
        (Metadata(), f"{BSD}\n names may not be used to endorse or promote products", "BSD-3-Clause"),
        (Metadata(), "GNU GENERAL PUBLIC LICENSE\n      Version 3, 29 June 2007", "GPL-3.0-only"),
        (Metadata(licence="see LICENSE"), "All rights reserved.", None),
        (Metadata(licence="Proprietary"), "", None),
        (Metadata(classifiers=("License :: OSI Approved :: BSD License",)), "", None),
    ],
)
def test_stated_or_known_text(metadata: Metadata, text: str, wanted: str | None) -> None:
    """Metadata first, then the text of a licence; what is unclear is not guessed."""
    tree = {"LICENSE": File(text.encode()), "other.txt": File(b"MIT License")} if text else {}
    assert licence_of(metadata, tree) == wanted
