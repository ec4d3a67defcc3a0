"""The tables of every name of Taichi and Quadrants: names that quadpy has, and refusals that say what to write instead."""

from __future__ import annotations

import pytest

import quadpy as qp
from tools.docs import differences

GROUPS = [(project, group) for project in ("taichi", "quadrants") for group in differences.groups_of(project)]
pytest.importorskip("PIL.Image", reason="windows need Pillow, an extra of quadpy's")


@pytest.fixture(autouse=True)
def cpu():
    yield qp.init(arch=qp.cpu)
    qp.init(arch=qp.cpu)


@pytest.mark.parametrize(("project", "group"), GROUPS, ids=lambda value: getattr(value, "path", value))
def test_each_name_is_there_or_says_what_to_write(project, group):
    for name in group.same:
        differences.found(project, group.path, name)
    for name in group.refused:
        with pytest.raises(AttributeError) as caught:
            differences.found(project, group.path, name)
        whole = {name, *group.path.split(".")}  # a module may be missing as a whole
        assert any(f"{part!r}" in str(caught.value) for part in whole), caught.value
        assert differences.refusal(project, group.path, name), f"{name} does not say what to write instead"
    assert group.better.keys() <= {*group.same}


@pytest.mark.parametrize(("project", "least"), [("taichi", 690), ("quadrants", 690)])
def test_the_table_is_complete_and_mostly_the_same(project, least):
    groups = [group for of, group in GROUPS if of == project]
    same, refused = (sum(len(getattr(group, what)) for group in groups) for what in ("same", "refused"))
    assert same + refused >= least
    assert same >= 0.88 * (same + refused)
    assert len({group.path for group in groups}) == len(groups)


def test_the_pages_print_the_tables():
    for project in ("taichi", "quadrants"):
        text = differences.print_differences(project)
        assert text.count("### ") == 3
        assert "called under qp.ad.no_grad()" in text
