"""Taichi's names: programs that change their import only, and windows without a display."""

from __future__ import annotations

import logging
import subprocess
import sys
import textwrap
from types import ModuleType

import numpy as np
import pytest

import quadpy as qp
import quadpy.compat.taichi as ti
from quadpy import settings
from quadpy.errors import ArgumentError

Image = pytest.importorskip("PIL.Image", reason="pictures need Pillow, an extra of quadpy's")


@pytest.fixture(autouse=True)
def cpu():
    ti.init(arch=ti.cpu)


@pytest.fixture
def window(monkeypatch, tmp_path):
    """Settings of windows for one test: ``window(frames=..., frame_limit=...)``."""

    def change(**changes):
        monkeypatch.setattr("quadpy.compat._frames.settings", lambda: settings.Settings(**changes))

    return change


def test_a_program_changes_its_import_only():
    x = ti.field(dtype=ti.float32, shape=(4, 3))

    @ti.kernel
    def fill(scale: ti.f32):
        for i, j in x:
            x[i, j] = ti.sin(0.0) + scale * (i + ti.cast(j, ti.f32))

    fill(2.0)
    assert x.to_numpy().tolist() == [[2.0 * (i + j) for j in range(3)] for i in range(4)]


def test_init_has_taichis_default_and_ignores_what_means_nothing_here(caplog):
    with caplog.at_level(logging.INFO, "quadpy"):
        ti.init(arch=ti.x64, packed=True, default_fp=ti.f64, device_memory_GB=2)
    assert caplog.messages == ["qp.init: ignored, because quadpy does not use them: device_memory_GB, packed"]
    a = ti.field(float, shape=())
    assert a.dtype == qp.f64


def test_default_types_may_be_pythons():
    ti.init(arch=ti.cpu, default_fp=float, default_ip=int)
    assert (ti.field(float, shape=()).dtype, ti.field(int, shape=()).dtype) == (qp.f32, qp.i32)


@pytest.mark.parametrize("arch", [ti.gpu, ti.vulkan, ti.metal, ti.opengl])
def test_a_gpu_that_is_not_there_is_the_cpu(arch):
    from quadpy.errors import NoDeviceError

    try:
        qp.init(arch=qp.gpu, enable_fallback=False)
    except NoDeviceError:
        with pytest.warns(RuntimeWarning, match="quadpy uses the CPU"):
            ti.init(arch=arch)
    else:
        ti.init(arch=arch)


def test_names_that_are_not_there_say_so():
    with pytest.raises(AttributeError, match="quadpy's taichi has no attribute 'no_such_name'"):
        _ = ti.no_such_name


def test_everything_of_quadpy_is_there_under_the_same_name():
    differing = {name for name in qp.__all__ if getattr(ti, name) is not getattr(qp, name)}
    modules = {"algorithms", "graph", "linalg", "math", "profiler", "simt", "tools", "types"}
    assert differing == {"Field", "__version__", "func", "init", "kernel", "polar_decompose", "svd", *modules}
    for module in modules - {"linalg", "tools"}:  # Taichi's linalg has sparse matrices
        ours, theirs = getattr(qp, module), getattr(ti, module)
        for name in ours.__all__:
            assert getattr(theirs, name) is getattr(ours, name) or isinstance(getattr(ours, name), ModuleType), name
    assert {name for name in qp.tools.__all__ if getattr(ti.tools, name) is not getattr(qp.tools, name)} == {
        "PLYWriter",
        "imshow",
    }


def test_the_annotation_of_a_functions_result_means_nothing():
    """As in Taichi, where it need not even be the right shape."""

    @ti.func
    def double(v) -> ti.i32:
        return 2 * v

    @ti.kernel
    def doubled() -> (ti.f32, ti.math.vec2):
        return double(0.25), double(ti.math.vec2(1, 2))

    number, vector = doubled()
    assert number == 0.5
    assert list(vector) == [2, 4]


def test_the_annotation_of_a_kernels_result_cuts_floats():
    @ti.kernel
    def cut(x: ti.f32) -> ti.i32:
        return x

    @ti.kernel(debug=True)
    def cut_both(x: ti.f32) -> (ti.i32, ti.types.vector(2, ti.i32)):
        return x, ti.Vector([x, -x])

    assert cut(2.7) == 2
    number, vector = cut_both(2.7)
    assert (number, list(vector)) == (2, [2, -2])
    with pytest.raises(ArgumentError, match="debug"):
        ti.kernel(debug=3)


def test_kernels_ask_for_the_shape_of_elements():
    @ti.func
    def length(x: ti.template(), i):
        if ti.static(x.element_shape() == [3]):
            return x[i].norm()
        ti.static_assert(x.element_shape() == [])
        return x[i]

    @ti.kernel
    def first(x: ti.types.ndarray(ndim=1)) -> ti.f32:
        return length(x, 0)

    vectors, numbers = ti.Vector.ndarray(3, ti.f32, 1), ti.ndarray(ti.f32, 1)
    vectors[0], numbers[0] = [0, 3, 4], -2.0
    assert first(vectors) == 5
    assert first(numbers) == -2


def test_a_numpy_array_may_be_unpacked():
    size = np.array([3, 4]) - 1

    @ti.kernel
    def count() -> ti.i32:
        n = 0
        for _ in ti.grouped(ti.ndrange(*size)):
            n += 1
        return n

    assert count() == 6


def corner(gui, x, y):
    """The colour of a pixel, x to the right, y upwards."""
    return gui.get_image()[x, y, :3].tolist()


def test_coordinates_go_from_the_lower_left():
    gui = ti.GUI("points", res=(8, 4), background_color=0x000080)
    gui.circle((0.99, 0.01), color=0xFF0000)
    gui.circles(np.array([[0.01, 0.99], [0.5, 0.5]]), color=np.array([0x00FF00, 0xFFFFFF]))
    assert corner(gui, 7, 0) == [1, 0, 0]
    assert corner(gui, 0, 3) == [0, 1, 0]
    assert corner(gui, 4, 2) == [1, 1, 1]
    assert corner(gui, 3, 0) == pytest.approx([0, 0, 128 / 255])


def test_an_image_is_a_field_of_numbers_or_vectors():
    gui = ti.GUI("image", res=(4, 2))
    shades, colors = ti.field(ti.f32, shape=(4, 2)), ti.Vector.field(3, ti.f32, shape=(4, 2))
    shades[3, 1], colors[0, 0] = 2.0, (0.0, 1.0, 0.0)
    gui.set_image(shades)
    assert corner(gui, 3, 1) == [1, 1, 1]
    assert corner(gui, 3, 0) == [0, 0, 0]
    gui.set_image(colors)
    assert corner(gui, 0, 0) == [0, 1, 0]
    with pytest.raises(ArgumentError, match="two axes"):
        gui.set_image(np.zeros(3))


def test_lines_triangles_and_text():
    gui = ti.GUI("shapes", res=64)
    gui.line((0, 0.5), (1, 0.5), color=0xFF0000)
    gui.triangle((0, 0), (0.4, 0), (0, 0.4), color=0x00FF00)
    gui.rect((0.6, 0.4), (0.9, 0.1), color=0x0000FF)
    gui.arrow((0.6, 0.6), (0.2, 0.0), color=0xFFFF00)
    gui.text("x", (0.1, 0.95))
    assert corner(gui, 20, 32) == [1, 0, 0]
    assert corner(gui, 4, 4) == [0, 1, 0]
    assert corner(gui, 38, 15) == [0, 0, 1]
    assert corner(gui, 45, 38) == [1, 1, 0]
    assert gui.get_image()[:20, 45:, :3].any()


def test_frames_go_to_files_and_the_last_one_closes_the_window(window, tmp_path):
    window(frames=tmp_path, frame_limit=2)
    gui = ti.GUI("My window!", res=4)
    while gui.running:
        gui.circle((0.1, 0.1))
        gui.show(tmp_path / f"own-{gui.frame}.png")
    assert gui.frame == 2
    (folder,) = tmp_path.glob("my-window-*")
    assert sorted(file.name for file in folder.iterdir()) == ["00000.png", "00001.png"]
    assert ti.tools.imread(tmp_path / "own-1.png").shape == (4, 4, 3)
    assert not gui.get_event()
    with pytest.raises(SystemExit) as ended:
        gui.show()
    assert ended.value.code == 0


def test_a_frame_begins_with_the_background():
    gui = ti.GUI("frames", res=2, background_color=0xFF0000)
    gui.circle((0.1, 0.1), color=0)
    gui.show()
    assert corner(gui, 0, 0) == [1, 0, 0]


def test_a_loop_without_an_end_ends_as_if_the_window_were_closed(tmp_path):
    program = """
        import quadpy.compat.taichi as ti
        window = ti.ui.Window("loop", (8, 8))
        while True:
            window.get_canvas().circles([[0.5, 0.5]], 0.2)
            window.show()
    """
    child = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, check=False, timeout=60
    )
    assert (child.returncode, child.stderr) == (0, b"")


def test_a_scene_is_projected_and_lit():
    window = ti.ui.Window("scene", (40, 20))
    scene, camera = ti.ui.Scene(), ti.ui.Camera()
    camera.position(0, 0, -5)
    camera.lookat(0, 0, 0)
    scene.set_camera(camera)
    scene.ambient_light((0.9, 0.9, 0.9))
    scene.particles(np.array([[0, 0, 0], [0, 0, 2.0], [0, 0, -9.0]]), 0.3, per_vertex_color=np.eye(3))
    scene.mesh(np.array([[-9, -9, 5], [9, -9, 5], [0, 9, 5.0]]), color=(1, 1, 1))
    window.get_canvas().scene(scene)
    pixels = window.get_image_buffer_as_numpy()
    assert pixels[20, 10, :3].tolist() == [1, 1, 1], "what is added later covers"
    scene.particles(np.array([[0, 0, 0], [0, 0, 2.0], [0, 0, -9.0]]), 0.3, per_vertex_color=np.eye(3))
    window.get_canvas().scene(scene)
    pixels = window.get_image_buffer_as_numpy()
    assert pixels[20, 10, :3].tolist() == [1, 0, 0], "the near one covers the far one; behind the camera is nothing"


def test_pictures_are_written_and_read(tmp_path):
    pytest.importorskip("av", reason="films need av, of the extra compat")
    image = np.random.default_rng(1).integers(0, 256, (5, 3, 3)).astype(np.uint8)
    ti.tools.imwrite(image, tmp_path / "a.png")
    np.testing.assert_array_equal(ti.tools.imread(tmp_path / "a.png"), image)
    assert ti.tools.imresize(image, 10, 6).shape == (10, 6, 3)
    film = ti.tools.VideoManager(tmp_path / "film", framerate=10)
    film.write_frames([image, 255 - image])
    film.make_video()
    with Image.open(film.get_output_filename(".gif")) as animation:
        assert animation.n_frames == 2


def test_a_mesh_is_written_as_ply(tmp_path):
    pytest.importorskip("plyfile", reason="PLY files need plyfile, of the extra compat")
    writer = ti.tools.PLYWriter(num_vertices=3, num_faces=1)
    writer.add_vertex_pos([0, 1, 0], [0, 0, 1], [0.5, 0, 0])
    writer.add_vertex_id()
    writer.add_faces([0, 1, 2])
    writer.add_face_channel("material", "int", [7])
    writer.add_vertex_alpha([0.5, 0.5, 0.25])
    writer.add_vertex_piece([1, 1, 1])
    writer.add_face_id()
    writer.add_face_piece([4])
    writer.export_frame_ascii(3, tmp_path / "mesh.ply")
    lines = (tmp_path / "mesh_000003.ply").read_text().splitlines()
    end = lines.index("end_header")
    assert lines[end + 1 :] == ["0 0 0.5 0 0.5 1", "1 0 0 1 0.5 1", "0 1 0 2 0.25 1", "3 0 1 2 7 0 4"]
    assert "element vertex 3" in lines
    with pytest.raises(ArgumentError, match="2 numbers for 3 vertices"):
        writer.add_vertex_channel("bad", "float", [1, 2])


def test_without_a_display_imshow_shows_nothing():
    ti.tools.imshow(np.zeros((4, 4)))


def test_colours_as_one_number():
    assert ti.rgb_to_hex((1.0, 0.5, 0.0)) == 0xFF7F00
    assert ti.hex_to_rgb(0xFF0000) == (1.0, 0.0, 0.0)
    assert ti.rgb_to_hex(np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])).tolist() == [0xFF0000, 0x0000FF]


def test_structs_by_taichis_names():
    ti.init(arch=ti.cpu)
    ray = ti.types.struct(origin=ti.math.vec3, t=ti.f32)

    @ti.dataclass
    class Sphere:
        center: ti.math.vec3
        radius: ti.f32

        @ti.func
        def depth(self, ray):
            return (self.center - ray.origin).norm() - self.radius

    spheres = Sphere.field(shape=(3,), layout=ti.Layout.SOA)
    spheres[1] = Sphere(center=[0, 0, 5], radius=1)
    hits = ti.Struct.field({"t": ti.f32, "id": ti.i32}, shape=3)

    @ti.kernel
    def trace():
        r = ray(origin=[0.0, 0.0, 0.0], t=1.0)
        for i in spheres:
            hits[i].t = spheres[i].depth(r) + r.t
            hits[i].id = i

    trace()
    assert hits[1].t == 5.0
    assert hits.id.to_numpy().tolist() == [0, 1, 2]


def test_channels_of_unknown_types_are_left_out_of_ply_files(tmp_path):
    pytest.importorskip("plyfile", reason="plyfile is not installed")
    writer = ti.tools.PLYWriter(num_vertices=2)
    writer.add_vertex_pos(np.zeros(2), np.ones(2), np.ones(2))
    with pytest.warns(RuntimeWarning, match="mass is left out: 'colour' is not a PLY type"):
        writer.add_vertex_channel("mass", "colour", np.ones(2))
    writer.export_ascii(tmp_path / "two.ply")
    text = (tmp_path / "two.ply").read_text()
    assert "property float x" in text
    assert "mass" not in text


def test_the_version_is_a_tuple_that_can_be_compared():
    assert ti.__version__ >= (1, 7, 0)


def test_an_example_with_lists_and_blocks_runs_as_it_is():
    x, n = ti.field(ti.i32), 16
    block = ti.root.pointer(ti.ij, 4)
    block.bitmasked(ti.ij, 4).place(x)
    words, length = ti.field(ti.i32), ti.field(ti.i32)
    ti.root.dense(ti.i, n).dynamic(ti.j, n, chunk_size=4).place(words)
    ti.root.dense(ti.i, n).place(length)

    @ti.kernel
    def fill():
        for i in range(n):
            for j in range(i):
                ti.append(words.parent(), i, j * j)
            length[i] = ti.length(words.parent(), i)
        for i, j in ti.ndrange((3, 6), (3, 6)):
            x[i, j] = 1

    @ti.kernel
    def count() -> ti.i32:
        found = 0
        ti.no_activate(x)
        for i, j in x:
            found += ti.is_active(block, ti.rescale_index(x, block, [i, j]))
            ti.deactivate(x.snode.parent(), [i, j])
        return found

    fill()
    assert length.to_numpy().tolist() == list(range(n))
    assert words[5, 4] == 16
    assert count() == 9
    assert x.to_numpy().sum() == 0
    ti.deactivate_all_snodes()
    assert count() == 0


def test_names_of_errors_and_of_the_log(caplog, tmp_path):
    assert ti.TaichiRuntimeTypeError is qp.ArgumentError
    with caplog.at_level(logging.DEBUG, "quadpy"):
        for log in (ti.trace, ti.debug, ti.info, ti.warn, ti.error):
            log("said")
    assert [record.levelno for record in caplog.records] == [10, 10, 20, 30, 40]

    @ti.experimental.real_func
    def double(x: ti.i32) -> ti.i32:
        return 2 * x

    @ti.kernel
    def run() -> ti.i32:
        return double(4)

    ti.init(arch=ti.cpu, timeline=True)
    assert run() == 8
    ti.timeline_save(str(tmp_path / "timeline.json"))
    assert "run" in (tmp_path / "timeline.json").read_text()
    ti.timeline_clear()


def test_names_of_taichis_own_modules():
    assert ti.lang.impl.current_cfg().fast_math
    assert ti.lang.impl.get_cuda_compute_capability() == 0
    assert ti.lang.impl.get_max_shared_memory_bytes() == 65536
    assert ti.lang.misc.is_arch_supported(ti.cpu)
