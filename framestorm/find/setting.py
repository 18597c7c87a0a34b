"""A setting of the function's platform that a search varies under a load that stays: `--over target.replicas=1..8`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from framestorm.errors import FramestormError, UsageError
from framestorm.model.search import OF_TARGET
from framestorm.plain import note
from framestorm.platform.base import Platform, SettingError, Site, TargetSettings
from framestorm.platform.registry import Platforms, read
from framestorm.setup.pieces import Piece


class PlatformSetting:
    """The setting of that name, `target.` and all; the words of --target give the function and its other settings.

    Raises:
        UsageError: a word is no setting, or gives the one that is varied.
    """

    def __init__(self, name: str, words: Sequence[str], site: Site) -> None:
        self.name = name.removeprefix(OF_TARGET)
        self._values: dict[str, object] = {}
        for word in words:
            key, equals, text = word.partition("=")
            if not key or not equals:
                raise UsageError(f"--target {word}: expected NAME=VALUE, such as function=noop or kind=knative")
            try:
                self._values[key] = YAML(typ="safe", pure=True).load(text)
            except YAMLError:
                raise UsageError(f"--target {word}: {text!r} is no value as in study.yml") from None
        if self.name in self._values:
            raise UsageError(f"--target {self.name}= and --over {name}= give the same setting: leave out --target")
        self._site, self._platforms = site, Platforms(site)

    def settings(self, value: float) -> TargetSettings:
        """Return the settings of the function with this value.

        Raises:
            UsageError: one of them is wrong.
        """
        try:
            return read({**self._values, self.name: int(value) if float(value).is_integer() else value})
        except SettingError as error:
            raise UsageError(f"--target, --over {OF_TARGET}{self.name}: {error}") from None

    def needs(self, ends: Sequence[float]) -> Sequence[Piece]:
        """Check what the function needs with the ends of the range, and return the pieces of set-up.

        Raises:
            FramestormError: something is missing.
        """
        settings = [self.settings(end) for end in ends]
        platform = self._platforms.of(settings[0].kind)
        points = {each.describe(): each for each in settings}
        missing = [each for each in platform.checks(points, self._values) if not each.is_there]
        if missing:
            raise FramestormError("\n".join(f"{each.what}: {each.words}" for each in missing))
        return platform.pieces(settings)

    def begin(self, folder: Path) -> None:
        """Let the platform keep in a folder what a search that goes on later needs again."""
        self._platforms = Platforms(self._site, folder)

    def bring_to(self, value: float) -> Platform[Any]:
        """Apply the value, and return the platform, whose function is ready."""
        return self._platforms.prepare(self.settings(value))

    def close(self) -> None:
        """Restore the platform, and say what goes on running."""
        for words in self._platforms.close():
            note(words)
