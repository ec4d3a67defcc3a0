"""Every public name has an entry in the reference: on one page, with its signature, parameters, errors and an example."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def docs():
    """The modules of the site's script, by name."""
    sys.path.insert(0, str(DOCS))
    yield importlib.import_module
    sys.path.remove(str(DOCS))


@pytest.fixture(scope="module")
def public(docs):
    return docs("_public")


def test_every_public_name_has_an_entry(public):
    names = {public.other_names().get(name, name) for name in public.public()}
    assert len(names) > 450
    assert names - set(public.pages()) == set(), "give it a place in a page of docs/reference"
    assert set(public.pages()) - names == set(), "pages name what is not public"


def test_a_name_that_no_page_has_is_found(public, monkeypatch):
    names = {**public.public(), "qp.brand_new": object()}
    monkeypatch.setattr(public, "public", lambda: names)
    public.other_names.cache_clear()
    with pytest.raises(AssertionError, match="brand_new"):
        test_every_public_name_has_an_entry(public)
    monkeypatch.undo()
    public.other_names.cache_clear()
