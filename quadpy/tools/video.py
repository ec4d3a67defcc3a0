"""Films, written by PyAV."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterable
from fractions import Fraction
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from quadpy.core.messages import shown
from quadpy.core.public import public
from quadpy.errors import ArgumentError
from quadpy.tools.libraries import library, pillow
from quadpy.tools.pictures import Picture, imwrite, picture_of

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Film", "VideoManager"]

_CODECS: Final = {".mp4": "libx264", ".mkv": "libx264", ".mov": "libx264", ".webm": "libvpx-vp9", ".gif": "gif"}


def _require_rate(framerate: object) -> None:
    if not isinstance(framerate, Real) or not 0 < float(framerate) < math.inf:
        raise ArgumentError(f"framerate={shown(framerate)} is not a number of frames per second")


class Film:
    """A film in one file, frame by frame: ``with Film("waves.mp4") as film: film.add(field)``.

    Args:
        path: a name that ends in ``.mp4``, ``.mkv``, ``.mov``, ``.webm`` or ``.gif``.
        framerate: frames per second.

    Raises:
        ArgumentError: the name has another ending, or ``framerate`` is not a positive number.
        QuadpyError: PyAV is not installed.
        OSError: the file cannot be written.
    """

    @public
    def __init__(self, path: str | Path, framerate: float = 24) -> None:
        self.path, self.framerate = Path(path), framerate
        if (codec := _CODECS.get(self.path.suffix.lower())) is None:
            raise ArgumentError(f"{self.path} is not a film", hint=f"use a name that ends in {', '.join(_CODECS)}")
        _require_rate(framerate)
        self._codec, self._av = codec, library("av", "films")
        if not self.path.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {self.path.parent}")
        self._size: tuple[int, int] | None = None
        self._file: Any = None
        self._stream: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def add(self, image: object) -> None:
        """Add ``image``, an array or field of shape (width, height[, channels]); all have the size of the first one.

        Raises:
            ArgumentError: it is not an image, or has another size.
        """
        self.add_picture(picture_of(image))

    def add_picture(self, picture: Picture) -> None:
        """Add ``picture``, of shape (height, width, 3), rows from the top."""
        height, width, _ = picture.shape
        size = self._size or self._begin(width, height)
        if size != (width, height):
            raise ArgumentError(f"a frame has {width} x {height} pixels, but the film has {size[0]} x {size[1]}")
        picture = picture[: self._stream.height, : self._stream.width]
        self._write(self._av.VideoFrame.from_ndarray(picture, format="rgb24"))

    def close(self) -> None:
        """Complete the file; a film without frames has none."""
        if self._file is not None:
            self._write(None)
            self._file.close()
            self._file = None

    def _begin(self, width: int, height: int) -> tuple[int, int]:
        self._size, self._file = (width, height), self._av.open(str(self.path), "w")
        self._stream = self._file.add_stream(self._codec, rate=Fraction(self.framerate).limit_denominator(1000))
        if self._codec == "gif":
            self._stream.width, self._stream.height, self._stream.pix_fmt = width, height, "rgb8"
        else:  # players know colours of half the resolution, which needs even sizes
            self._stream.width, self._stream.height, self._stream.pix_fmt = (
                max(width & -2, 2),
                max(height & -2, 2),
                "yuv420p",
            )
        return self._size

    def _write(self, frame: Any) -> None:
        for packet in self._stream.encode(frame):
            self._file.mux(packet)


class VideoManager:
    """The frames of a film, as ``frames/000000.png`` and so on in ``output_dir``, and the film made of them.

    Args:
        output_dir: a folder, which is created if it does not exist.
        video_filename: the name of the film in it, without suffix; by default ``video``.
        width, height: if given, the size that frames must have.
        post_processor: changes each picture before it is written: an object with ``process``, or a function.
        framerate: frames per second.
        automatic_build: accepted but ignored; ``make_video`` makes the film.
    """

    @public
    def __init__(
        self, output_dir: str | Path, video_filename: str | None = None, width: int | None = None,
        height: int | None = None, post_processor: Any = None, framerate: float = 24, automatic_build: bool = True,
    ) -> None:  # fmt: skip
        _require_rate(framerate)
        self.directory, self.frame_directory = str(output_dir), str(Path(output_dir) / "frames")
        self.video_filename, self.width, self.height = video_filename or "video", width, height
        self.framerate, self.frame_counter, self.automatic_build = framerate, 0, automatic_build
        self.frame_fns: list[str] = []
        self._process: Callable[[Any], Any] | None = getattr(post_processor, "process", post_processor)
        Path(self.frame_directory).mkdir(parents=True, exist_ok=True)

    def get_frame_directory(self) -> str:
        """Where the frames are."""
        return self.frame_directory

    def get_output_filename(self, suffix: str) -> str:
        """Where the film is: ``suffix`` is ``.mp4`` or ``.gif``."""
        return str(Path(self.directory) / f"{self.video_filename}{suffix}")

    def write_frame(self, img: object) -> None:
        """Add ``img`` as one frame; see ``imwrite``.

        Raises:
            ArgumentError: it is not an image, or has another size than the film.
        """
        image = self._process(img) if self._process else img
        height, width, _ = picture_of(image).shape
        self.width, self.height = self.width or width, self.height or height
        if (self.width, self.height) != (width, height):
            raise ArgumentError(f"a frame has {width} x {height} pixels, but the film has {self.width} x {self.height}")
        name = f"{self.frame_counter:06d}.png"
        imwrite(image, Path(self.frame_directory) / name)
        self.frame_fns.append(name)
        self.frame_counter += 1

    def write_frames(self, images: Iterable[object]) -> None:
        """Add ``images`` as frames."""
        for image in images:
            self.write_frame(image)

    def clean_frames(self) -> None:
        """Delete the pictures of the frames; the film stays."""
        shutil.rmtree(self.frame_directory)
        Path(self.frame_directory).mkdir()
        self.frame_fns.clear()

    def make_video(self, mp4: bool = True, gif: bool = True) -> None:
        """Write the film of all frames, as ``video.mp4`` and as ``video.gif``.

        Raises:
            QuadpyError: PyAV is not installed.
        """
        suffixes = [suffix for suffix, wanted in ((".mp4", mp4), (".gif", gif)) if wanted and self.frame_fns]
        for suffix in suffixes:
            with Film(self.get_output_filename(suffix), self.framerate) as film:
                for name in self.frame_fns:
                    film.add_picture(_read(Path(self.frame_directory) / name))


def _read(path: Path) -> Picture:
    with pillow().open(path) as image:
        return np.asarray(image.convert("RGB"))
