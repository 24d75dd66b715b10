"""Getting the bytes of a data file: from the folder HOLDFAST_DATA names, from the cache, or from its address.

Whatever the way, the bytes that are handed on are the bytes whose sha256 was checked.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

from holdfast.datasets.sources import SOURCES
from holdfast.errors import DataError
from holdfast.extras import needed_for

VARIABLE = "HOLDFAST_DATA"
_ONE_AT_A_TIME = threading.Lock()  # a second thread finds in the cache what the first has fetched


def read_files(names: Sequence[str]) -> list[bytes]:
    """Return the verified contents of files listed in `SOURCES`, downloading those that are not here yet."""
    try:
        return _read_files(names)
    except DataError as error:
        if len(names) == 1:
            raise
        whole = f"All of the {len(names)} files are needed, {names[0]} to {names[-1]}."
        raise DataError(f"{error} {whole}") from error.__cause__


def _read_files(names: Sequence[str]) -> list[bytes]:
    folder = os.environ.get(VARIABLE)
    if folder:
        return [_from_folder(Path(folder).expanduser(), name) for name in names]
    cache = cache_folder()
    with _ONE_AT_A_TIME:
        contents = {name: _from_cache(cache, name) for name in names}
        missing = [name for name, content in contents.items() if content is None]
        if missing:
            what = missing[0] if len(missing) == 1 else f"{missing[0].split('/')[0]} ({len(missing)} files)"
            host = urlsplit(SOURCES[missing[0]].url).netloc
            print(f"holdfast: downloading {what} from {host} to {cache}", file=sys.stderr)
        return [_download(cache, name) if content is None else content for name, content in contents.items()]


def cache_folder() -> Path:
    """Return the folder of the user's cache that downloads are kept in."""
    return Path(_import_pooch().os_cache("holdfast"))


def _from_folder(folder: Path, name: str) -> bytes:
    url, sha256 = SOURCES[name]
    advice = f"Fetch {url} and save it as {folder / name}, or unset {VARIABLE} to have it downloaded."
    if not folder.is_dir():
        raise DataError(f"{VARIABLE} names {folder}, which is no folder. {advice}")
    try:
        content = (folder / name).read_bytes()
    except FileNotFoundError:
        raise DataError(f"{VARIABLE} names {folder}, which has no {name}. {advice}") from None
    except OSError as error:
        raise DataError(f"{folder / name} cannot be read: {error.strerror}. {advice}") from error
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise DataError(
            f"{folder / name} is truncated, altered or another version: "
            f"expected sha256 {sha256}, got {found} of {len(content)} bytes. {advice}"
        )
    return content


def _from_cache(cache: Path, name: str) -> bytes | None:
    """Return what is in the cache, or None if it is not there or not what it should be."""
    try:
        content = (cache / name).read_bytes()
    except OSError:
        return None
    return content if hashlib.sha256(content).hexdigest() == SOURCES[name].sha256 else None


def _download(cache: Path, name: str) -> bytes:
    """Let pooch download to a temporary name, check and rename: nothing half-written is left in the cache."""
    pooch = _import_pooch()
    url, sha256 = SOURCES[name]
    path = cache / name
    advice = f"To provide it by hand, fetch {url}, save it as {name} in a folder, and set {VARIABLE} to that folder."
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel("WARNING")  # the line on stderr has said it
    try:
        pooch.retrieve(url, f"sha256:{sha256}", path.name, path.parent)
    except OSError as error:
        raise DataError(f"{name} {_what_failed(error, path.parent)}. {advice}") from error
    except ValueError as error:  # so pooch says that the sha256 is another
        message = f"what came for {name} is truncated or altered and was thrown away: expected sha256 {sha256}"
        raise DataError(f"{message}. Try again. {advice}") from error
    finally:
        logger.setLevel(level)
    content = _from_cache(cache, name)
    if content is None:
        raise DataError(f"{path} was downloaded, and changed before it could be read. Try again. {advice}")
    return content


def _what_failed(error: OSError, folder: Path) -> str:
    of_requests = type(error).__module__.startswith("requests")  # whose errors are OSErrors, too
    if not of_requests and not isinstance(error, ConnectionError | TimeoutError):
        return f"could not be written to the cache {folder}: {error}"
    response = getattr(error, "response", None)
    if response is not None:
        return f"could not be downloaded: the server answered {response.status_code} {response.reason}"
    return f"could not be downloaded: the server could not be reached, or broke off ({type(error).__name__})"


def _import_pooch() -> ModuleType:
    with needed_for("downloading data", "data", f"or set {VARIABLE} to a folder that has the files"):
        import pooch
    module: ModuleType = pooch
    return module
