"""Read data files from LIMPET_DATA, the cache or their URLs; verify their sha256."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from limpet._optional import optional_import
from limpet.exceptions import DatasetError


class RemoteFile(NamedTuple):
    """The URL of a file, at a fixed commit, and the sha256 of its bytes."""

    url: str
    sha256: str


def _read_registry() -> dict[str, RemoteFile]:
    text = Path(__file__).with_name("registry.txt").read_text(encoding="utf-8")
    rows = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return {name: RemoteFile(url, sha256) for name, sha256, url in rows}


REMOTE_FILES = _read_registry()  # in the order of the streams
DATA_FOLDER_VARIABLE = "LIMPET_DATA"
_DOWNLOAD_LOCK = threading.Lock()  # a second thread reads from the cache what the first has downloaded


def read_files(names: Sequence[str]) -> list[bytes]:
    """Return the verified contents of files, downloading the missing ones."""
    folder = os.environ.get(DATA_FOLDER_VARIABLE)
    try:
        if folder:
            return [_read_from_folder(Path(folder).expanduser(), name) for name in names]
        return _read_or_download(get_cache_folder(), names)
    except DatasetError as error:
        if len(names) == 1:
            raise
        hint = f"All of the {len(names)} files are needed, {names[0]} to {names[-1]}."
        raise DatasetError(f"{error} {hint}") from error.__cause__


def _read_or_download(cache: Path, names: Sequence[str]) -> list[bytes]:
    with _DOWNLOAD_LOCK:
        contents = {name: _read_from_cache(cache, name) for name in names}
        missing = [name for name, content in contents.items() if content is None]
        if missing:
            label = missing[0] if len(missing) == 1 else f"{missing[0].split('/')[0]} ({len(missing)} files)"
            host = urlsplit(REMOTE_FILES[missing[0]].url).netloc
            print(f"limpet: downloading {label} from {host} to {cache}", file=sys.stderr)
        return [_download(cache, name) if content is None else content for name, content in contents.items()]


def get_cache_folder() -> Path:
    return Path(_import_pooch().os_cache("limpet"))


def _import_pooch() -> Any:
    with optional_import("downloading data", "data", f"or set {DATA_FOLDER_VARIABLE} to a folder with the files"):
        import pooch
    return pooch


def _read_from_folder(folder: Path, name: str) -> bytes:
    url, sha256 = REMOTE_FILES[name]
    advice = f"Fetch {url} and save it as {folder / name}, or unset {DATA_FOLDER_VARIABLE} to have it downloaded."
    if not folder.is_dir():
        raise DatasetError(f"{DATA_FOLDER_VARIABLE} names {folder}, which is not a folder. {advice}")
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
            f"must have sha256 {sha256}, got {actual_sha256} of {len(content)} bytes. {advice}"
        )
    return content


def _read_from_cache(cache: Path, name: str) -> bytes | None:
    """Return the content of a file; None if it is missing or altered."""
    try:
        content = (cache / name).read_bytes()
    except OSError:
        return None
    return content if hashlib.sha256(content).hexdigest() == REMOTE_FILES[name].sha256 else None


def _download(cache: Path, name: str) -> bytes:
    """Download a file with pooch, which leaves no partial file in the cache."""
    pooch, path = _import_pooch(), cache / name
    url, sha256 = REMOTE_FILES[name]
    advice = f"To provide it manually, fetch {url}, save it as FOLDER/{name}, and set {DATA_FOLDER_VARIABLE}=FOLDER."
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel("WARNING")  # the caller has already printed a line
    try:
        pooch.retrieve(url, f"sha256:{sha256}", path.name, path.parent)
    except OSError as error:
        raise DatasetError(f"{name} {_describe_failure(error, path.parent)}. {advice}") from error
    except ValueError as error:  # pooch's error for another sha256
        message = f"the download of {name} is truncated or altered and was removed: must have sha256 {sha256}"
        raise DatasetError(f"{message}. Try again. {advice}") from error
    finally:
        logger.setLevel(level)
    content = _read_from_cache(cache, name)
    if content is None:
        raise DatasetError(f"{path} was downloaded, but changed before it was read. Try again. {advice}")
    return content


def _describe_failure(error: OSError, folder: Path) -> str:
    is_requests_error = type(error).__module__.startswith("requests")  # whose errors are OSErrors, too
    if not is_requests_error and not isinstance(error, ConnectionError | TimeoutError):
        return f"could not be written to the cache {folder}: {error}"
    response = getattr(error, "response", None)
    if response is not None:
        return f"could not be downloaded: the server returned {response.status_code} {response.reason}"
    return f"could not be downloaded: the server is unreachable or closed the connection ({type(error).__name__})"
