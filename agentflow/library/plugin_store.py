"""The user's plugins: copies of their files, and a record of what each held when it was added."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from agentflow.core.errors import ConfigError, InvalidFile
from agentflow.core.record import Record, encode
from agentflow.frontmatter import write_atomic
from agentflow.library.plugins import Plugin, hash_files, read_plugin
from agentflow.parse import decode
from agentflow.trust import fingerprint

_FILE_MODE, _RUN_MODE = 0o400, 0o500
"""Read-only: nothing that a plugin runs changes what was shown."""
_COMPILED = "__pycache__"
"""What Python writes beside the scripts that it runs."""


class InstalledPlugin(Record):
    """One plugin of the user."""

    name: str
    source: str
    """The folder or address that it came from, as the person named it."""
    entry: str = ""
    """Its name in the marketplace that was named."""
    version: str = ""
    commit: str = ""
    """The commit of its repository; empty for a folder."""
    files: dict[str, str] = {}
    """Every file with the SHA-256 of what it held when a person looked at it."""


class _Record(Record):
    plugins: tuple[InstalledPlugin, ...] = ()


class PluginStore(Record):
    """The folder of the user's plugins, and the file that records them."""

    place: Path
    record: Path

    def load(self) -> tuple[InstalledPlugin, ...]:
        """Return what was added. Raises InvalidFile for a record that cannot be read."""
        if not self.record.is_file():
            return ()
        return decode(_Record, self.record.read_bytes(), str(self.record)).plugins

    def find(self, name: str) -> InstalledPlugin | None:
        return next((each for each in self.load() if each.name == name), None)

    def find_folder(self, name: str) -> Path:
        return self.place / name

    def read(self, installed: InstalledPlugin) -> Plugin:
        """Return an unchanged plugin. Raises ConfigError naming what changed since it was added.

        A plugin may guard something by a hook, so that nothing runs without it.
        """
        changed = self.find_changed(installed)
        if changed:
            raise ConfigError(
                f"the plugin {installed.name} has changed since it was added: {changed[0]}",
                hint=f"look at it with `agentflow plugins update {installed.name}`, "
                f"or give it up with `agentflow plugins remove {installed.name}`",
            )
        return read_plugin(self.find_folder(installed.name), "plugin")

    def find_changed(self, installed: InstalledPlugin) -> tuple[str, ...]:
        """Return the files that are not as they were when the plugin was added, new ones too."""
        folder = self.find_folder(installed.name)
        changed = [name for name, digest in installed.files.items() if fingerprint(folder, name) != digest]
        try:
            new = hash_files(folder).keys() - installed.files.keys()
        except InvalidFile as error:
            return (*changed, error.source)
        return (*changed, *sorted(name for name in new if _COMPILED not in name.split("/")))

    def install(self, installed: InstalledPlugin, folder: Path) -> None:
        """Put a plugin's files in their place, and write down what they hold."""
        self.place.mkdir(parents=True, exist_ok=True, mode=0o700)
        kept = self.find_folder(installed.name)
        new = kept.with_name(f".{installed.name}.new")
        shutil.rmtree(new, ignore_errors=True)
        copy_plugin_files(folder, new, installed.files)
        others = [each for each in self.load() if each.name != installed.name]
        self._write((*others, installed))
        shutil.rmtree(kept, ignore_errors=True)
        new.rename(kept)

    def remove(self, name: str) -> None:
        """Forget a plugin and delete its files."""
        self._write(each for each in self.load() if each.name != name)
        shutil.rmtree(self.find_folder(name), ignore_errors=True)

    def _write(self, plugins: Iterable[InstalledPlugin]) -> None:
        self.record.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = _Record(plugins=tuple(sorted(plugins, key=lambda each: each.name)))
        write_atomic(self.record, encode(found) + b"\n")


def copy_plugin_files(source: Path, to: Path, names: Iterable[str]) -> None:
    """Copy a folder's files, read-only, each link as the file that it leads to."""
    for name in names:
        place = to / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, place)
        place.chmod(_RUN_MODE if (source / name).stat().st_mode & 0o100 else _FILE_MODE)
