"""What a network wants done to an image before it sees it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from resight.errors import InputError

_INTERPOLATIONS = {"linear": cv2.INTER_LINEAR, "cubic": cv2.INTER_CUBIC, "area": cv2.INTER_AREA}
_NOTES = ("licence", "source", "training_data")
_PADDING = 114  # the grey that YOLO networks are trained with
Triple = tuple[float, float, float]


class Preprocessing(BaseModel):
    """How an RGB image becomes an input of shape (3, height, width).

    The image is brought to `size` (height, width), its channels are put in order, divided by
    `scale`, and then by `std` after `mean` is subtracted (in the order of `channels`).

    Attributes
    ----------
    resize : "stretch" | "letterbox"
        Change the aspect ratio, or keep it and pad with grey at the right and the bottom.
    output : str or None
        Which output is used; None: the only one, or the first.
    interpolation : "linear" | "cubic" | "area" | "antialiased"
        OpenCV's, or bilinear as Pillow and torchvision have it: blurred before it shrinks.
    pool : "mean" | "none"
        What a descriptor does with an output of more than two axes: average over places, or keep
        every place.
    licence, source, training_data : str
        What the network's author says; never used for computing.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    size: tuple[int, int]
    channels: Literal["RGB", "BGR"] = "RGB"
    scale: float = Field(255.0, gt=0, allow_inf_nan=False)
    mean: Triple = (0.485, 0.456, 0.406)
    std: Triple = (0.229, 0.224, 0.225)
    resize: Literal["stretch", "letterbox"] = "stretch"
    interpolation: Literal["linear", "cubic", "area", "antialiased"] = "linear"
    output: str | None = None
    pool: Literal["mean", "none"] = "mean"
    licence: str = ""
    source: str = ""
    training_data: str = ""

    @classmethod
    def beside(cls, network: Path, **defaults: Any) -> Preprocessing:
        """Read the JSON of the same name beside a network; what it leaves out is `defaults`."""
        file = network.with_suffix(".json")
        try:
            given = json.loads(file.read_text("utf-8")) if file.is_file() else {}
            return cls(**{**defaults, **given})
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"]))
            allowed = ", ".join(cls.model_fields)
            raise InputError(f"{file}: {field}: {first['msg']}. Fields: {allowed}") from error
        except (ValueError, TypeError) as error:
            raise InputError(f"{file} is not a JSON object: {error}") from error

    def __call__(self, image: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Prepare one RGB image: float32 array of shape (3, height, width)."""
        return self.batch([image])[0]

    def batch(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """Prepare RGB images: float32 array of shape (n, 3, height, width)."""
        slope = (1.0 / (self.scale * np.array(self.std))).astype(np.float32)
        offset = (np.array(self.mean) / self.std).astype(np.float32)
        order = 1 if self.channels == "RGB" else -1
        prepared = np.empty((len(images), 3, *self.size), np.float32)
        for planes, image in zip(prepared, images, strict=True):
            # Plane by plane, which stays in the processor's cache from one step to the next.
            channels = cv2.split(self._fitted(image))[::order]
            for values, channel, factor, shift in zip(planes, channels, slope, offset, strict=True):
                values[...] = channel
                values *= factor
                values -= shift
        return prepared

    def numbers(self) -> str:
        """Everything that decides what a network sees and what is taken of it, as JSON."""
        return self.model_dump_json(exclude=set(_NOTES))

    def __str__(self) -> str:
        (height, width), numbers = self.size, "({:g}, {:g}, {:g})".format
        return (
            f"{width} x {height} pixels, {self.channels} / {self.scale:g}, mean "
            f"{numbers(*self.mean)}, deviation {numbers(*self.std)}, {self.resize}, "
            f"{self.interpolation}"
        )

    def ratio(self, image: NDArray[np.uint8]) -> tuple[float, float]:
        """Return how many pixels of the input one of the image becomes, along y and x."""
        ratios = self.size[0] / image.shape[0], self.size[1] / image.shape[1]
        return ratios if self.resize == "stretch" else (min(ratios), min(ratios))

    def _fitted(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        y, x = self.ratio(image)
        rows = max(1, min(int(image.shape[0] * y + 0.5), self.size[0]))
        columns = max(1, min(int(image.shape[1] * x + 0.5), self.size[1]))
        resized = _resized(image, rows, columns, self.interpolation)
        if (rows, columns) == self.size:
            return resized
        padded = np.full((*self.size, 3), _PADDING, np.uint8)
        padded[:rows, :columns] = resized
        return padded


def _resized(image: NDArray[np.uint8], rows: int, columns: int, way: str) -> NDArray[np.uint8]:
    if way == "antialiased":
        if rows < image.shape[0] or columns < image.shape[1]:
            from PIL import Image

            shrunk = Image.fromarray(image).resize((columns, rows), Image.Resampling.BILINEAR)
            return np.asarray(shrunk)
        way = "linear"  # equal to Pillow's within one level where nothing shrinks, and much quicker
    resized = cv2.resize(image, (columns, rows), interpolation=_INTERPOLATIONS[way])
    return np.asarray(resized, np.uint8)
