"""What pages say about the code: marks that print, names that are complete, commands that CI runs."""

from __future__ import annotations

import ast
import re

import pytest

from quadpy.core.target import AMD_ARCHS, NVIDIA_ARCHS
from quadpy.lang.grammar import GRAMMAR
from quadpy.lang.vecmethods import METHODS
from tools.docs import DOCS, ROOT, marks


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", sorted(DOCS.glob("**/*.md")), ids=lambda page: str(page.relative_to(DOCS)))
def test_every_mark_is_printed(page):
    printed = marks.printed(page.read_text(encoding="utf-8"))
    assert "<!-- print:" not in printed


def test_the_files_that_pages_name_are_there():
    pages = [*DOCS.glob("**/*.md"), ROOT / "README.md", ROOT / "benchmarks/README.md"]
    named = {
        (page.name, name)
        for page in pages
        for name in re.findall(r"`((?:quadpy|tests|benchmarks|tools)/[\w./-]+)`", page.read_text(encoding="utf-8"))
    }
    assert len(named) > 50
    assert [(page, name) for page, name in named if not (ROOT / name).exists()] == []


def test_printed_tables_are_complete():
    targets = marks.PRINTERS["targets"]()
    assert set(re.findall(r"^\| `(gfx[\w-]+)`", targets, re.MULTILINE)) == set(AMD_ARCHS)


def test_the_table_of_nvidias_targets_is_complete():
    rows = re.findall(r"^\| `(sm_\w+)` \| [\d.]+ \| ([\d.]+) \| ([\d.]+) \|$", marks.PRINTERS["nvidia"](), re.MULTILINE)
    assert [name for name, _, _ in rows] == list(NVIDIA_ARCHS)
    assert ("sm_90", "7.8", "12.0") in rows


def test_the_page_on_architecture_names_files_and_folders_that_are_there():
    text, package = text_of("docs/explanation/architecture.md"), ROOT / "quadpy"
    files = {name for name in re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py)`", text) if not name.startswith("tests/")}
    missing = [
        name for name in files if not (package / name).exists() and not (package / "codegen/lower" / name).exists()
    ]
    assert missing == []
    assert len(files) > 40
    tree = re.search(r"```text\nquadpy/\n(.*?)```", text, re.DOTALL)[1]
    shown = {name.rstrip("/") for line in tree.splitlines() for name in re.findall(r"\b([a-z_]+)/", line[:31])}
    folders = {path.name for path in package.rglob("*") if path.is_dir() and any(path.glob("*.py"))}
    assert shown == folders


def test_the_glossary_has_one_meaning_for_a_term_and_says_where_it_is():
    rows = re.findall(
        r"^\| ([^|]+?) \| ([^|]+?) \|(?: (.*?) \|)?$", text_of("docs/explanation/glossary.md"), re.MULTILINE
    )
    terms = [
        term.strip() for head, *_ in rows if not head.startswith("`") for term in head.split(",") if head != "term"
    ]
    terms = [term for term in terms if term not in {"name", "---"}]
    assert len(terms) > 50
    assert sorted(set(terms)) == sorted(terms)
    places = [place for *_, cell in rows for place in re.findall(r"`([\w/.]+)`", cell)]
    assert len(places) > 50
    assert [place for place in places if not (ROOT / "quadpy" / place).exists()] == []


@pytest.mark.parametrize("mode", ["strict", "fast"])
def test_the_instruction_counts_have_every_kernel_on_both_targets(mode):
    rows = re.findall(
        r"^\| (\w+)(?:/\d)? \| (gfx\w+) \| [\d→ ]+ \|", marks.PRINTERS["instructions"](mode), re.MULTILINE
    )
    kernels = {name for name, _ in rows}
    assert {"saxpy", "sweep", "total_array", "nbody", "matmul_32", "histogram", "substep"} <= kernels
    assert set(rows) == {(name, target) for name in kernels for target in ("gfx942", "gfx1100")}


def test_the_readme_counts_the_targets():
    assert f"[{len(AMD_ARCHS)} targets]" in text_of("README.md")
    assert f"[{len(NVIDIA_ARCHS)} targets]" in text_of("README.md")


def test_the_language_reference_names_every_method_of_vectors():
    page = marks.printed(text_of("docs/reference/language.md"))
    rows = dict(re.findall(r"^\| `(\w+)\(.*?\)` \| (.*?) \|$", page, re.MULTILINE))
    assert [name for name in METHODS if not rows.get(name)] == []


SHOWN: dict[type[ast.AST], str] = {
    ast.AnnAssign: "`x: qp.f64 = value`", ast.Assert: "`assert`", ast.Assign: "`x = value`", ast.AugAssign: "`x += value`",
    ast.Break: "`break`", ast.Continue: "`continue`", ast.Expr: "an expression", ast.For: "`for`", ast.If: "`elif`",
    ast.Match: "`match`", ast.Pass: "`pass`", ast.Return: "`return`", ast.While: "`while`", ast.With: "`with qp.stream_parallel():`",
    ast.Attribute: "`v.x`", ast.BinOp: "`+ - *`", ast.BoolOp: "`and`, `or`", ast.Call: "`qp.i32(x)`",
    ast.Compare: "`== != < <= > >=`", ast.Constant: "literal", ast.Dict: "dicts", ast.DictComp: "dicts and sets",
    ast.GeneratorExp: "generator expressions", ast.IfExp: "`a if c else b`", ast.JoinedStr: "F-strings", ast.Lambda: "Lambdas",
    ast.List: "lists", ast.ListComp: "Comprehensions", ast.Name: "names", ast.NamedExpr: "`(name := value)`",
    ast.Set: "sets", ast.SetComp: "dicts and sets", ast.Slice: "`v[1:]`", ast.Subscript: "`v[i]`", ast.Tuple: "tuples",
    ast.UnaryOp: "`not`",
}  # fmt: skip
"""How the reference shows each node of the grammar."""


def test_the_language_reference_shows_the_whole_grammar():
    page = marks.printed(text_of("docs/reference/language.md"))
    assert set(SHOWN) == {*GRAMMAR.statements, *GRAMMAR.expressions}
    assert [node.__name__ for node, text in SHOWN.items() if text.lower() not in page.lower()] == []
    assert [word for word, _ in GRAMMAR.missing.values() if f"`{word}`" not in page] == []


@pytest.mark.parametrize("page", ["index", "tutorial/index", "guides/install", "guides/amdgpu", "guides/nvidia"])
def test_the_first_command_needs_no_package_that_is_not_published(page):
    first = re.search(r"```sh\n(.*?)```", text_of(f"docs/{page}.md"), re.DOTALL)[1]
    assert re.search(r"^pip install '?\.", first, re.MULTILINE)
    assert "quadpy-lang" not in first


def test_every_page_is_in_the_navigation():
    nav = text_of("zensical.toml")
    pages = [str(page.relative_to(DOCS)) for page in DOCS.glob("**/*.md")]
    assert [page for page in pages if page not in nav] == []


def test_the_index_of_decisions_has_each_with_its_title():
    rows = dict(
        re.findall(r"^\| \[(\d{4})\]\([\w.-]+\) \| (.+) \|$", (DOCS / "adr/index.md").read_text(), re.MULTILINE)
    )
    pages = [page.read_text().partition("\n")[0].removeprefix("# ") for page in sorted((DOCS / "adr").glob("0*.md"))]
    assert [f"{number} {title}" for number, title in sorted(rows.items())] == pages


def test_the_readmes_test_command_is_what_ci_runs():
    command = re.search(r"pip install -e '\.\[dev\]' && (pytest.*)", text_of("README.md"))[1]
    assert f"step {command}\n" in text_of(".ci/run")


def test_every_driver_keeps_the_rules_that_apply_to_it():
    printed = marks.PRINTERS["conformance"]()
    assert re.search(r"^\| rule \| cpu \| recording \|", printed, re.MULTILINE)
    assert "work of a stream runs in order" in printed
    assert "**no**" not in printed
