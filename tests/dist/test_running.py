"""``quadpy run``: what a program's user sees of it."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from quadpy.dist.rank import LabelledLines, main
from ranks import lines_of, run_program


@pytest.fixture(autouse=True)
def _own_path(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", list(sys.argv))


@pytest.mark.parametrize(
    ("text", "message"),
    [("x = = 3\n", "SyntaxError: invalid syntax"), ("import nosuchmodule\n", "No module named 'nosuchmodule'")],
)
def test_a_program_that_does_not_begin_shows_its_own_lines_only(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    program = tmp_path / "program.py"
    program.write_text(text)
    assert main([str(program)]) == 1
    shown = capsys.readouterr().err
    assert message in shown.splitlines()[-1]
    assert shown.count("File ") == 1
    assert str(program) in shown


def test_a_module_that_is_not_there(capsys: pytest.CaptureFixture[str]):
    assert main(["-m", "nosuch.module"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("ImportError: Error while finding module specification for 'nosuch.module'")


def test_a_folder_with_a_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "__main__.py").write_text("import beside_it, sys\nprint(beside_it.x, sys.argv[1:])\n")
    (tmp_path / "beside_it.py").write_text("x = 3\n")
    assert main([str(tmp_path), "a"]) == 0
    assert capsys.readouterr().out == "3 ['a']\n"


def test_alone_output_and_exit_status_are_the_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    program = tmp_path / "program.py"
    program.write_text("import sys\nprint(sys.argv[1:], __name__)\nprint('half a line', end='')\nsys.exit(3)\n")
    assert main([str(program), "--flag", "-n", "x y"]) == 3
    assert capsys.readouterr().out == "['--flag', '-n', 'x y'] __main__\nhalf a line"


ASKS = """
    import sys
    from quadpy.dist import world
    print(world().rank, world().size, sys.argv[1:], __name__)
    sys.stdout.buffer.write(b"bytes\\n")
    try:
        input("name? ")
    except EOFError:
        print("no input")
    print("half a line", end="")
    sys.exit(3 if world().rank == 0 else 0)
"""


def test_what_passes_through_to_several_ranks(tmp_path: Path):
    """Arguments, output and the exit status; input is rank 0's, and the others have none to wait for."""
    done = run_program(tmp_path, ASKS, 2, "--", "-n", "a b", input="Ada\n")
    assert done.returncode == 3, done.stderr
    assert lines_of(done.stdout, 0) == ["0 2 ['--', '-n', 'a b'] __main__", "name? half a line"]
    assert lines_of(done.stdout, 1) == ["1 2 ['--', '-n', 'a b'] __main__", "name? no input", "half a line"]
    assert done.stdout.count("bytes\n") == 2


def test_labelled_lines():
    stream = io.StringIO()
    lines = LabelledLines(stream, "[3] ")
    lines.write("half ")
    assert stream.getvalue() == ""
    lines.write("whole\nand")
    assert stream.getvalue() == "[3] half whole\n"
    for percent in range(3):
        lines.write(f"\r{percent}0%")
    lines.write("\r\nend")
    assert stream.getvalue().splitlines(keepends=True)[1:] == ["[3] 20%\r\n"]
    lines.finish()
    assert stream.getvalue().endswith("[3] end\n")
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        lines.colour  # noqa: B018 - it is asked for
