"""Pictures, films, meshes and grids: what is in the files, read by the libraries that others use."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import quadpy as qp
from quadpy import tools

av = pytest.importorskip("av", reason="films need av, of the extra tools")
plyfile = pytest.importorskip("plyfile", reason="PLY files need plyfile, of the extra tools")
pytest.importorskip("pyevtk", reason="VTK files need pyevtk, of the extra tools")


def frames_of(path):
    with av.open(str(path)) as film:
        return [frame.to_ndarray(format="rgb24") for frame in film.decode(video=0)], film.streams.video[0].average_rate


def test_a_field_is_written_as_a_picture_and_read_again(tmp_path):
    field = qp.field(qp.f32, (6, 4))
    field[5, 3] = 1.0  # right, up
    tools.imwrite(field, tmp_path / "a.png")
    read = tools.imread(tmp_path / "a.png")
    assert read.shape == (6, 4, 3)
    assert read[5, 3].tolist() == [255, 255, 255]
    assert read.sum() == 3 * 255
    assert tools.imread(tmp_path / "a.png", channels=1).shape == (6, 4, 1)
    assert tools.imread(tmp_path / "a.png", channels=4)[..., 3].min() == 255
    assert tools.imresize(read, 12, 8).shape == (12, 8, 3)
    assert tools.imresize(np.arange(4).reshape(2, 2), 4).tolist() == np.kron([[0, 1], [2, 3]], np.ones((2, 2))).tolist()


@pytest.mark.parametrize(
    ("image", "first"),
    [
        (np.array([[0.5, 2.0, np.nan]]), [127, 127, 127]),
        (np.array([[0x102030]], np.int32), [16, 32, 48]),
        (np.array([[7]], np.int64), [7, 7, 7]),
        (np.array([[[1, 2, 3, 4]]], np.uint8), [1, 2, 3]),
        (np.array([[[0.0, 1.0]]]), [0, 255, 0]),
    ],
    ids=["floats", "packed", "integers", "opacity", "two channels"],
)
def test_every_form_of_an_image_is_written(image, first, tmp_path):
    tools.imwrite(image, tmp_path / "a.png")
    assert tools.imread(tmp_path / "a.png")[0, 0].tolist() == first


def test_what_is_no_image_is_an_error(tmp_path):
    with pytest.raises(qp.ArgumentError, match=r"an image has two axes.*\(3,\)"):
        tools.imwrite(np.zeros(3), tmp_path / "a.png")


@pytest.mark.parametrize("suffix", [".mp4", ".webm", ".gif"])
def test_a_film_has_the_frames_that_were_added(suffix, tmp_path):
    shades = [0.0, 0.5, 1.0]
    with tools.Film(tmp_path / f"film{suffix}", framerate=10) as film:
        for shade in shades:
            image = np.full((33, 17, 3), (shade, 0, 0), np.float32)  # odd sizes, which most players refuse
            film.add(image)
    frames, rate = frames_of(film.path)
    assert len(frames) == 3
    assert rate == 10
    assert frames[0].shape == ((17, 33, 3) if suffix == ".gif" else (16, 32, 3))
    for frame, shade in zip(frames, shades, strict=True):
        assert np.abs(frame[8, 16].astype(int) - [255 * shade, 0, 0]).max() < 40  # of 8 bits in a GIF


def test_films_say_what_is_wrong(tmp_path):
    with pytest.raises(qp.ArgumentError, match=r"(?s)film\.txt is not a film.*\.mp4"):
        tools.Film(tmp_path / "film.txt")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        tools.Film(tmp_path / "nowhere" / "film.mp4")
    for rate in (0, -1, float("nan"), "24", None):
        with pytest.raises(qp.ArgumentError, match="is not a number of frames per second"):
            tools.Film(tmp_path / "film.mp4", framerate=rate)
    with tools.Film(tmp_path / "film.gif") as film:
        film.add(np.zeros((8, 4)))
        with pytest.raises(qp.ArgumentError, match=r"a frame has 4 x 8 pixels, but the film has 8 x 4"):
            film.add(np.zeros((4, 8)))
    with tools.Film(tmp_path / "empty.mp4"):
        pass
    assert not (tmp_path / "empty.mp4").exists()


def test_a_video_manager_keeps_frames_and_makes_films_of_them(tmp_path):
    manager = tools.VideoManager(tmp_path / "out", video_filename="waves", framerate=20, post_processor=lambda i: 1 - i)
    manager.write_frames([np.zeros((16, 8)), np.ones((16, 8))])
    manager.write_frame(np.zeros((16, 8)))
    assert sorted(path.name for path in (tmp_path / "out/frames").iterdir()) == manager.frame_fns
    assert manager.frame_counter == 3
    with pytest.raises(qp.ArgumentError, match="a frame has 8 x 8 pixels, but the film has 16 x 8"):
        manager.write_frame(np.zeros((8, 8)))
    manager.make_video()
    for suffix in ".mp4", ".gif":
        frames, rate = frames_of(manager.get_output_filename(suffix))
        assert rate == 20  # GIFs count hundredths of a second
        assert [frame[4, 4, 0] > 128 for frame in frames] == [True, False, True]
    manager.clean_frames()
    assert list((tmp_path / "out/frames").iterdir()) == []
    assert manager.get_output_filename(".mp4") == str(tmp_path / "out" / "waves.mp4")


@pytest.mark.parametrize("text", [False, True], ids=["binary", "text"])
@pytest.mark.parametrize("face_type", ["tri", "quad"])
def test_a_mesh_is_written_as_ply(tmp_path, text, face_type):
    each = {"tri": 3, "quad": 4}[face_type]
    x = qp.field(qp.f32, 4)
    x.from_numpy(np.array([0, 1, 2, 3], np.float32))
    writer = tools.PLYWriter(4, 2, face_type, comment="two faces")
    writer.add_face_id()
    writer.add_faces(np.arange(2 * each).reshape(2, each) % 4)
    writer.add_vertex_pos(x, x, np.zeros(4))
    writer.add_vertex_rgba(*np.eye(4))
    writer.add_vertex_id()
    writer.add_face_channel("weight", "double", [0.1, 0.2])
    (writer.export_frame_ascii if text else writer.export_frame)(7, tmp_path / "mesh.ply")
    read = plyfile.PlyData.read(tmp_path / "mesh_000007.ply")
    assert (read.text, read.comments) == (text, ["two faces"])
    assert read["vertex"]["y"].tolist() == [0, 1, 2, 3]
    assert read["vertex"]["green"].tolist() == [0, 1, 0, 0]
    assert read["vertex"]["id"].dtype == np.int32
    assert [face.tolist() for face in read["face"]["vertex_indices"]] == (
        np.arange(2 * each).reshape(2, each) % 4
    ).tolist()
    assert read["face"]["weight"].tolist() == [0.1, 0.2]
    assert read["face"]["id"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda w: w.add_vertex_channel("a", "float", [1, 2]), "a: 2 numbers for 3 vertices"),
        (lambda w: w.add_face_channel("a", "float", [1, 2]), "a: 2 numbers for 1 faces"),
        (lambda w: w.add_vertex_channel("a", "half", [1, 2, 3]), "'half' is not a PLY type.*double"),
        (lambda w: w.add_faces([0, 1]), "2 corners for 1 faces of 3"),
        (lambda w: w.add_faces([0, 1, 3]), "the corners range from 0 to 3, but there are 3 vertices"),
        (lambda w: w.export("nowhere.ply"), "1 faces without corners.*add_faces"),
        (lambda w: tools.PLYWriter(0), "one vertex or more"),
        (lambda w: tools.PLYWriter(1, 1, "hexagon"), "'hexagon' is not a type of faces"),
    ],
)
def test_a_mesh_that_is_not_complete_is_an_error(call, says):
    with pytest.raises(qp.ArgumentError, match=f"(?s){says}"):
        call(tools.PLYWriter(3, 1))


def numbers_in(path, dtype):
    """The numbers of the first array after the XML part of a VTK file."""
    content = path.read_bytes()
    start = content.index(b'encoding="raw">') + len(b'encoding="raw">')
    start = content.index(b"_", start) + 1
    size = int.from_bytes(content[start : start + 8], "little")
    return np.frombuffer(content[start + 8 : start + 8 + size], dtype)


def test_a_grid_is_written_as_vtk(tmp_path):
    field = qp.field(qp.f32, (2, 3, 4))
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    field.from_numpy(values)
    written = tools.write_vtk(field, tmp_path / "density", spacing=(0.5, 0.5, 2.0))
    assert written == tmp_path / "density.vti"
    header = written.read_bytes().partition(b"<AppendedData")[0].decode()
    assert 'WholeExtent="0 2 0 3 0 4"' in header
    assert 'Spacing="0.5 0.5 2.0 ' in header
    assert '<CellData Scalars="density">' in header
    np.testing.assert_array_equal(numbers_in(written, np.float32), values.ravel("F"))

    flat = tools.write_vtk(values[..., 0].astype(np.float64), tmp_path / "flat.vti")
    assert b'WholeExtent="0 2 0 3 0 1"' in flat.read_bytes()
    np.testing.assert_array_equal(numbers_in(flat, np.float64), values[..., 0].ravel("F"))


def test_vectors_are_written_with_three_components(tmp_path):
    velocity = qp.field(qp.types.vector(2, qp.f32), (2, 2))
    velocity[1, 0] = [3, 4]
    written = tools.write_vtk(velocity, tmp_path / "v0.5", vectors=True)
    assert written.name == "v0.5.vti"
    assert b'NumberOfComponents="3"' in written.read_bytes()
    assert numbers_in(written, np.float32).reshape(4, 3).tolist() == [[0] * 3, [3, 4, 0], [0] * 3, [0] * 3]
    with pytest.raises(qp.ArgumentError, match=r"a grid with 2 or 3 axes.*\(4,\)"):
        tools.write_vtk(np.zeros(4), tmp_path / "line")


@pytest.mark.parametrize(
    ("module", "call"),
    [
        ("av", "Film('a.mp4')"),
        ("PIL.Image", "imwrite([[0.0]], 'a.png')"),
        ("plyfile", "PLYWriter(1).export('a.ply')"),
        ("pyevtk", "write_vtk([[0.0]], 'a')"),
    ],
)
def test_a_missing_library_is_an_error_that_names_the_extra(module, call, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "pyevtk.hl", raising=False)
    with pytest.raises(qp.QuadpyError, match=r"(?s)not installed.*pip install 'quadpy-lang\[tools\]'"):
        eval(call, vars(tools))


def test_nothing_of_it_is_imported_before_it_is_used():
    program = "import sys, quadpy; quadpy.tools; print({'PIL', 'av', 'plyfile', 'pyevtk', 'pygfx'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
