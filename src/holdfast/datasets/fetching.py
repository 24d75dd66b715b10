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

from holdfast.datasets.sources import REMOTE_FILES
from holdfast.errors import DatasetError
from holdfast.extras import optional_import

DATA_FOLDER_VARIABLE = "HOLDFAST_DATA"
_DOWNLOAD_LOCK = threading.Lock()  # a second thread finds in the cache what the first has fetched


def read_files(names: Sequence[str]) -> list[bytes]:
    """Return the verified contents of files listed in `SOURCES`, downloading those that are not here yet."""
    try:
        return _read_files(names)
    except DatasetError as error:
        if len(names) == 1:
            raise
        hint = f"All of the {len(names)} files are needed, {names[0]} to {names[-1]}."
        raise DatasetError(f"{error} {hint}") from error.__cause__


def _read_files(names: Sequence[str]) -> list[bytes]:
    folder = os.environ.get(DATA_FOLDER_VARIABLE)
    if folder:
        return [_read_from_folder(Path(folder).expanduser(), name) for name in names]
    cache = get_cache_folder()
    with _DOWNLOAD_LOCK:
        contents = {name: _read_from_cache(cache, name) for name in names}
        missing = [name for name, content in contents.items() if content is None]
        if missing:
            label = missing[0] if len(missing) == 1 else f"{missing[0].split('/')[0]} ({len(missing)} files)"
            host = urlsplit(REMOTE_FILES[missing[0]].url).netloc
            print(f"holdfast: downloading {label} from {host} to {cache}", file=sys.stderr)
        return [_download(cache, name) if content is None else content for name, content in contents.items()]


def get_cache_folder() -> Path:
    """Return the folder of the user's cache that downloads are kept in."""
    return Path(_import_pooch().os_cache("holdfast"))


def _read_from_folder(folder: Path, name: str) -> bytes:
    url, sha256 = REMOTE_FILES[name]
    advice = f"Fetch {url} and save it as {folder / name}, or unset {DATA_FOLDER_VARIABLE} to have it downloaded."
    if not folder.is_dir():
        raise DatasetError(f"{DATA_FOLDER_VARIABLE} names {folder}, which is no folder. {advice}")
    try:
        content = (folder / name).read_bytes()
    except FileNotFoundError:
        raise DatasetError(f"{DATA_FOLDER_VARIABLE} names {folder}, which has no {name}. {advice}") from None
    except OSError as error:
        raise DatasetError(f"{folder / name} cannot be read: {error.strerror}. {advice}") from error
    actual_sha256 = hashlib.sha256(content).hexdigest()
    if actual_sha256 != sha256:
        raise DatasetError(
            f"{folder / name} is truncated, altered or another version: "
            f"expected sha256 {sha256}, got {actual_sha256} of {len(content)} bytes. {advice}"
        )
    return content


def _read_from_cache(cache: Path, name: str) -> bytes | None:
    """Return what is in the cache, or None if it is not there or not what it should be."""
    try:
        content = (cache / name).read_bytes()
    except OSError:
        return None
    return content if hashlib.sha256(content).hexdigest() == REMOTE_FILES[name].sha256 else None


def _download(cache: Path, name: str) -> bytes:
    """Let pooch download to a temporary name, check and rename: nothing half-written is left in the cache."""
    pooch = _import_pooch()
    url, sha256 = REMOTE_FILES[name]
    path = cache / name
    advice = f"To provide it by hand, fetch {url}, save it as {name} in a folder, and set {DATA_FOLDER_VARIABLE} to that folder."
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel("WARNING")  # the line on stderr has said it
    try:
        pooch.retrieve(url, f"sha256:{sha256}", path.name, path.parent)
    except OSError as error:
        raise DatasetError(f"{name} {_describe_failure(error, path.parent)}. {advice}") from error
    except ValueError as error:  # so pooch says that the sha256 is another
        message = f"what came for {name} is truncated or altered and was thrown away: expected sha256 {sha256}"
        raise DatasetError(f"{message}. Try again. {advice}") from error
    finally:
        logger.setLevel(level)
    content = _read_from_cache(cache, name)
    if content is None:
        raise DatasetError(f"{path} was downloaded, and changed before it could be read. Try again. {advice}")
    return content


def _describe_failure(error: OSError, folder: Path) -> str:
    is_requests_error = type(error).__module__.startswith("requests")  # whose errors are OSErrors, too
    if not is_requests_error and not isinstance(error, ConnectionError | TimeoutError):
        return f"could not be written to the cache {folder}: {error}"
    response = getattr(error, "response", None)
    if response is not None:
        return f"could not be downloaded: the server answered {response.status_code} {response.reason}"
    return f"could not be downloaded: the server could not be reached, or broke off ({type(error).__name__})"


def _import_pooch() -> ModuleType:
    with optional_import("downloading data", "data", f"or set {DATA_FOLDER_VARIABLE} to a folder that has the files"):
        import pooch
    module: ModuleType = pooch
    return module
