from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest

from quadpy.errors import QuadpyError
from quadpy.settings import Settings, SettingsError, default_cache_dir, variable


def test_an_empty_environment_gives_the_defaults():
    assert Settings.from_environ({}) == Settings()
    assert Settings.from_environ({variable(field.name): "" for field in fields(Settings)}) == Settings()


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("QUADPY_CACHE", "0", "cache", False),
        ("QUADPY_CACHE", "on", "cache", True),
        ("QUADPY_CACHE_DIR", "some/folder", "cache_dir", Path("some/folder").absolute()),
        ("QUADPY_CACHE_SIZE", "12", "cache_size", 12),
        ("QUADPY_ARCH", "gpu", "arch", "gpu"),
        ("QUADPY_NUM_THREADS", "3", "num_threads", 3),
        ("QUADPY_ALLOCATOR", "Pool", "allocator", "pool"),
        ("QUADPY_DEBUG", "1", "debug", True),
        ("QUADPY_FAST_MATH", "no", "fast_math", False),
        ("QUADPY_DEFAULT_FP", "64", "default_fp", 64),
        ("QUADPY_DEFAULT_IP", "32", "default_ip", 32),
        ("QUADPY_LOG_LEVEL", "debug", "log_level", "debug"),
    ],
)
def test_a_variable_sets_its_field_and_no_other(name, text, field, value):
    found = Settings.from_environ({name: text})
    different = {f.name for f in fields(Settings) if getattr(found, f.name) != getattr(Settings(), f.name)}
    assert getattr(found, field) == value
    assert different <= {field}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("QUADPY_CACHE", "maybe"),
        ("QUADPY_CACHE_SIZE", "0"),
        ("QUADPY_CACHE_SIZE", "-1"),
        ("QUADPY_CACHE_SIZE", "1e3"),
        ("QUADPY_CACHE_SIZE", "9" * 5000),
        ("QUADPY_NUM_THREADS", "two"),
        ("QUADPY_NUM_THREADS", "²"),
        ("QUADPY_ALLOCATOR", "malloc"),
        ("QUADPY_DEFAULT_FP", "16"),
        ("QUADPY_LOG_LEVEL", "loud"),
        ("QUADPY_CACHE_DIR", "~no-such-user-here/cache"),
    ],
)
def test_a_bad_value_is_an_error_that_names_the_variable_and_what_it_takes(name, text):
    with pytest.raises(SettingsError, match=name) as caught:
        Settings.from_environ({name: text})
    assert isinstance(caught.value, QuadpyError)
    assert "set it to" in str(caught.value)


def test_settings_are_frozen():
    with pytest.raises(FrozenInstanceError):
        Settings().cache = False


def test_the_default_cache_folder_follows_xdg():
    assert default_cache_dir({"XDG_CACHE_HOME": "/somewhere"}) == Path("/somewhere/quadpy")


def test_without_a_home_there_is_no_default_cache_folder():
    assert default_cache_dir({"XDG_CACHE_HOME": "~no-such-user-here"}) is None


def test_a_relative_folder_stays_the_same_when_the_program_goes_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = Settings.from_environ({"QUADPY_CACHE_DIR": "here"})
    monkeypatch.chdir("/")
    assert found.cache_dir == tmp_path / "here"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("QUADPY_DEBGU", "quadpy has no setting QUADPY_DEBGU; did you mean 'QUADPY_DEBUG'?"),
        ("QUADPY_THREADS", "quadpy has no setting QUADPY_THREADS; did you mean 'QUADPY_NUM_THREADS'?"),
        ("QUADPY_ZZZ", "quadpy has no setting QUADPY_ZZZ"),
    ],
)
def test_a_variable_that_is_not_quadpys_is_a_warning(name, message):
    with pytest.warns(RuntimeWarning) as caught:
        assert Settings.from_environ({name: "1", "OTHER_DEBGU": "1"}) == Settings()
    assert [str(warning.message) for warning in caught] == [message]
