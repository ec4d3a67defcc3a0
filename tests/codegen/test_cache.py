"""The kernel cache: what is stored comes back whole or not at all, whatever happens to the folder."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings as hypothesis_settings, strategies as st

from quadpy.cache.cache import Cache, CacheKey, IndexKey, IndexRecord, open_cache
from quadpy.cache.format import unseal
from quadpy.errors import CacheError
from quadpy.settings import Settings

MIB = 1 << 20
DIGEST = CacheKey("ir", "cpu", "toolchain").digest()
PAYLOAD = bytes(range(256)) * 3

same_folder = hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def digest(number: int) -> str:
    return CacheKey(str(number), "cpu", "toolchain").digest()


def entry(folder: Path, name: str = DIGEST) -> Path:
    return folder / f"{name}.qpc"


def age(file: Path, hours: float) -> None:
    then = time.time() - 3600 * hours
    os.utime(file, (then, then))


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache", MIB)


def test_what_was_stored_comes_back_in_another_cache_of_the_same_folder(cache):
    assert cache.load(DIGEST) is None
    cache.store(DIGEST, PAYLOAD)
    assert Cache(cache.path, MIB).load(DIGEST) == PAYLOAD


def test_an_empty_payload_is_a_hit(cache):
    cache.store(DIGEST, b"")
    assert cache.load(DIGEST) == b""


def test_a_second_store_replaces_the_first(cache):
    cache.store(DIGEST, b"old")
    cache.store(DIGEST, b"new")
    assert cache.load(DIGEST) == b"new"
    assert cache.stats().entries == 1


@same_folder
@given(data=st.data())
def test_a_damaged_file_is_never_loaded_and_is_removed(tmp_path, data):
    cache = Cache(tmp_path, MIB)
    cache.store(DIGEST, PAYLOAD)
    intact = entry(tmp_path).read_bytes()
    start = data.draw(st.integers(0, len(intact)), "start")
    end = data.draw(st.integers(start, len(intact)), "end")
    damaged = intact[:start] + data.draw(st.binary(max_size=64), "instead") + intact[end:]
    entry(tmp_path).write_bytes(damaged)
    assert cache.load(DIGEST) == (PAYLOAD if damaged == intact else None)
    assert entry(tmp_path).exists() == (damaged == intact)


@same_folder
@given(foreign=st.binary(max_size=200))
def test_a_foreign_file_is_never_loaded(tmp_path, foreign):
    entry(tmp_path).write_bytes(foreign)
    assert Cache(tmp_path, MIB).load(DIGEST) is None


def test_an_entry_under_another_name_is_foreign(cache):
    cache.store(digest(1), PAYLOAD)
    entry(cache.path, digest(1)).rename(entry(cache.path, digest(2)))
    assert cache.load(digest(2)) is None


WRITER = """
import sys
from pathlib import Path
from quadpy.cache.cache import Cache
folder, name, number = sys.argv[1:]
cache = Cache(Path(folder), 1 << 20)
for _ in range(300):
    cache.store(name, number.encode() * 5000)
    seen = cache.load(name)
    assert seen is not None and len(seen) == 5000 and len(set(seen)) == 1, seen and seen[:20]
"""


def test_processes_may_write_and_read_one_entry_at_once(tmp_path):
    folder = tmp_path / "cache"
    command = [sys.executable, "-W", "error", "-c", WRITER, str(folder), DIGEST]
    writers = [subprocess.Popen([*command, str(number)], stderr=subprocess.PIPE, text=True) for number in range(4)]
    assert [writer.communicate(timeout=120)[1] for writer in writers] == [""] * 4
    assert not list(folder.glob("*.tmp"))


def test_threads_may_store_load_and_clear_at_once(cache):
    failures = []

    def work(number: int) -> None:
        try:
            for turn in range(200):
                cache.store(digest(turn % 5), b"x" * 5000)
                assert cache.load(digest(turn % 5)) in (None, b"x" * 5000)
                if turn % 50 == number:
                    cache.clear()
        except BaseException as failure:  # noqa: BLE001 - whatever it is, the test must see it
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert cache.path is not None, "clearing must not look like an unwritable folder"


def test_the_folder_stays_below_its_limit_and_keeps_what_was_used_last(cache):
    cache.store(DIGEST, PAYLOAD)
    for number in range(60):
        age(entry(cache.path), hours=2)
        assert cache.load(DIGEST) == PAYLOAD  # a use: makes it young again
        cache.store(digest(number), bytes(50_000))
        age(entry(cache.path, digest(number)), hours=100 - number)
        assert cache.stats().nbytes <= MIB + MIB // 16
    assert cache.load(DIGEST) == PAYLOAD
    assert cache.load(digest(0)) is None
    assert cache.load(digest(59)) == bytes(50_000)


def test_the_limit_holds_over_processes_that_write_little_each(tmp_path):
    for number in range(60):  # a Cache of its own knows as little as a process of its own
        Cache(tmp_path, MIB).store(digest(number), bytes(50_000))
    assert Cache(tmp_path, MIB).stats().nbytes <= MIB + MIB // 16


def test_a_hit_on_a_recent_entry_does_not_touch_it(cache):
    cache.store(DIGEST, PAYLOAD)
    age(entry(cache.path), hours=0.5)
    before = entry(cache.path).stat().st_mtime_ns
    assert cache.load(DIGEST) == PAYLOAD
    assert entry(cache.path).stat().st_mtime_ns == before


def test_what_a_killed_writer_left_is_removed_and_a_live_writer_is_left_alone(cache):
    cache.store(DIGEST, PAYLOAD)
    left, live = cache.path / "left.tmp", cache.path / "live.tmp"
    left.write_bytes(bytes(10_000))
    live.write_bytes(bytes(10_000))
    age(left, hours=2)
    assert cache.clear() > 10_000
    assert not left.exists()
    assert live.exists()


def test_clear_removes_entries_and_nothing_else(cache):
    cache.store(DIGEST, PAYLOAD)
    mine = cache.path / "notes.txt"
    mine.write_text("mine")
    assert cache.stats().entries == 1
    assert cache.clear() > 0
    assert cache.load(DIGEST) is None
    assert list(cache.path.iterdir()) == [mine]


def test_a_folder_that_was_removed_is_made_again(cache):
    cache.store(digest(1), PAYLOAD)
    cache.clear()
    cache.path.rmdir()
    cache.store(digest(2), PAYLOAD)
    assert cache.load(digest(2)) == PAYLOAD


def test_the_folder_is_its_owners_alone(cache):
    cache.store(DIGEST, PAYLOAD)
    assert cache.path.stat().st_mode & 0o077 == 0


def test_an_unwritable_folder_warns_once_and_entries_live_in_memory(tmp_path):
    (tmp_path / "file").touch()
    cache = Cache(tmp_path / "file" / "cache", MIB)
    with pytest.warns(RuntimeWarning, match=r"file.cache cannot be written .*QUADPY_CACHE_DIR"):
        cache.store(digest(1), b"one")
    cache.store(digest(2), b"two")  # silently: warnings are errors here
    assert (cache.load(digest(1)), cache.load(digest(2)), cache.load(DIGEST)) == (b"one", b"two", None)
    assert cache.stats().entries == 0
    cache.clear()
    assert cache.load(digest(1)) is None


def test_memory_has_the_same_limit():
    cache = Cache(None, limit=1000)
    cache.store(digest(1), bytes(600))
    cache.store(digest(2), bytes(600))
    assert cache.load(digest(1)) == bytes(600)
    assert cache.load(digest(2)) is None


def test_an_unwritable_folder_that_was_asked_for_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CacheError, match=r"file.cache: it cannot be written .*QUADPY_CACHE_DIR"):
        open_cache(Settings(cache_dir=tmp_path / "file" / "cache"))


def test_a_cache_that_is_off_keeps_nothing(tmp_path):
    cache = open_cache(Settings(cache=False, cache_dir=tmp_path))
    cache.store(DIGEST, PAYLOAD)
    assert cache.load(DIGEST) is None
    assert list(tmp_path.iterdir()) == []


def test_settings_choose_folder_and_limit(tmp_path, monkeypatch):
    chosen = open_cache(Settings(cache_dir=tmp_path, cache_size=3))
    assert (chosen.path, chosen.limit) == (tmp_path, 3 * MIB)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert open_cache(Settings()).path == tmp_path / "xdg" / "quadpy"


def test_without_a_home_the_cache_is_in_memory_and_says_so(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "~no-such-user-here")
    with pytest.warns(RuntimeWarning, match="home folder"):
        cache = open_cache(Settings())
    cache.store(DIGEST, PAYLOAD)
    assert cache.load(DIGEST) == PAYLOAD


def test_an_index_record_leads_to_its_object(cache):
    key = IndexKey("text", "module.kernel", 12, "f32, i32[2]", "cpu", "toolchain")
    assert cache.find(key) == ()
    cache.remember(key, DIGEST, "n is 3")
    assert cache.find(key) == ((DIGEST, "n is 3"),)


def test_an_index_record_keeps_the_latest_ways(cache):
    key = IndexKey("text", "module.kernel", 12, "f32, i32[2]", "cpu", "toolchain")
    for number in (*range(IndexRecord.MOST + 2), 4):
        cache.remember(key, digest(number), f"n is {number}")
    assert [facts for _, facts in cache.find(key)] == [f"n is {number}" for number in (4, 9, 8, 7, 6, 5, 3, 2)]


@pytest.mark.parametrize("blob", [b"", b"{}", b"\xff", b'[["short",""]]', b'[["%s"]]' % DIGEST.encode()])
def test_what_is_no_index_record_is_refused(blob):
    with pytest.raises(ValueError):  # noqa: PT011 - the words are json's in half of the cases
        IndexRecord.from_bytes(blob)


keys = st.builds(CacheKey, st.text(), st.text(), st.text()) | st.builds(
    IndexKey, st.text(), st.text(), st.integers(), st.text(), st.text(), st.text()
)


@given(keys, keys)
def test_keys_share_a_digest_only_if_equal(one, other):
    assert (one.digest() == other.digest()) == (one == other)


def test_a_digest_is_the_same_in_every_process():
    """Entries outlive the process: a digest that depended on hash seeds or addresses would never be found."""
    code = "from quadpy.cache.cache import CacheKey; print(CacheKey('ir', 'cpu', 'toolchain').digest())"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert child.stdout.strip() == DIGEST


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make ``path`` another user's."""
    if os.geteuid() == 0:
        os.chown(path, 65534, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o722])
def test_a_folder_that_others_may_write_is_not_used(cache, mode):
    cache.store(DIGEST, PAYLOAD)
    cache.path.chmod(mode)
    again = Cache(cache.path, MIB)
    assert f"mode is {mode:o}" in again.trouble()
    with pytest.warns(RuntimeWarning, match=f"not used, because other users may write to it .*{mode:o}.*chmod go-w"):
        assert again.load(DIGEST) is None
    again.store(DIGEST, b"mine")  # silently: warnings are errors here
    assert again.load(DIGEST) == b"mine"
    assert unseal(DIGEST, entry(cache.path).read_bytes()) == PAYLOAD


def test_a_folder_of_another_user_is_not_used_though_it_was_asked_for(cache, monkeypatch):
    cache.store(DIGEST, PAYLOAD)
    give_away(cache.path, monkeypatch)
    again = open_cache(Settings(cache_dir=cache.path))
    with pytest.warns(RuntimeWarning, match="not used, because it belongs to another user"):
        assert again.load(DIGEST) is None


def test_a_link_to_a_folder_of_another_user_is_not_used(cache, tmp_path, monkeypatch):
    cache.store(DIGEST, PAYLOAD)
    give_away(cache.path, monkeypatch)
    (tmp_path / "link").symlink_to(cache.path)
    with pytest.warns(RuntimeWarning, match="another user"):
        assert Cache(tmp_path / "link", MIB).load(DIGEST) is None


def test_an_entry_of_another_user_is_not_read(cache, monkeypatch):
    cache.store(DIGEST, PAYLOAD)
    assert cache.load(DIGEST) == PAYLOAD
    give_away(entry(cache.path), monkeypatch)
    assert cache.load(DIGEST) is None
    assert not entry(cache.path).exists()


def test_an_entry_that_others_may_write_is_not_read(cache):
    cache.store(DIGEST, PAYLOAD)
    entry(cache.path).chmod(0o666)
    assert cache.load(DIGEST) is None


def test_an_entry_is_a_file_and_no_link(cache, tmp_path):
    cache.store(DIGEST, PAYLOAD)
    entry(cache.path).rename(tmp_path / "elsewhere")
    entry(cache.path).symlink_to(tmp_path / "elsewhere")
    assert cache.load(DIGEST) is None
    cache.store(DIGEST, b"new")
    assert cache.load(DIGEST) == b"new"
    assert unseal(DIGEST, (tmp_path / "elsewhere").read_bytes()) == PAYLOAD


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", [f"{DIGEST}.qpc", "tally"])
def test_nobody_waits_for_a_pipe(cache, name):
    cache.path.mkdir(mode=0o700)
    os.mkfifo(cache.path / name)
    assert cache.load(DIGEST) is None
    if name == "tally":
        with pytest.warns(RuntimeWarning, match="cannot be written"):
            cache.store(DIGEST, PAYLOAD)
    else:
        cache.store(DIGEST, PAYLOAD)
    assert cache.load(DIGEST) == PAYLOAD


def test_an_entry_above_the_limit_is_not_read_into_memory(cache):
    cache.store(DIGEST, PAYLOAD)
    with entry(cache.path).open("r+b") as file:
        file.truncate(1 << 40)  # sparse
    assert cache.load(DIGEST) is None


def test_what_is_made_is_the_owners_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        cache = Cache(tmp_path / "around" / "cache", MIB)
        cache.store(DIGEST, PAYLOAD)
    finally:
        os.umask(before)
    made = [cache.path.parent, cache.path, *cache.path.iterdir()]
    assert [path.stat().st_mode & 0o022 for path in made] == [0] * len(made)
    assert cache.load(DIGEST) == PAYLOAD
