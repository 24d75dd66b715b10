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


_GITHUB_URL = "https://raw.githubusercontent.com"
_TCPD_URL = f"{_GITHUB_URL}/alan-turing-institute/TCPD/7c6c2e09e3ad1d41f26869cb7b9f9882175c8a6e/datasets"
# Before the repair of February 2022, which took the outliers out; newer versions are other data.
_SKAB_URL = f"{_GITHUB_URL}/waico/SKAB/48b5fee8e94c467e2367c302e2afa98054b73335"
_ADBENCH_URL = f"{_GITHUB_URL}/Minqi824/ADBench/3dac8221081e190f157d78e93bfa8867f90d0965/adbench/datasets"
_PYOD_URL = f"{_GITHUB_URL}/yzhao062/pyod/ef6d5e8dc828615f498286c1d6a22cbd02fd4cd2"
_NAB_URL = f"{_GITHUB_URL}/numenta/NAB/ea702d75cc2258d9d7dd35ca8e5e2539d71f3140"

_SKAB_SHA256 = {  # in the order of the streams
    "valve1/0.csv": "90f70a75cf359e5e7b0fffa0644fdbac6733a71510e7891b6d0427effd750cb6",
    "valve1/1.csv": "39483f67a026d0d937e75a9c979bac87fd518ad3ad8d6f97d3d5150f85099e9b",
    "valve1/2.csv": "56c85752551485622eb972ec36756bade69f287b1530d33041895406fc33dbc3",
    "valve1/3.csv": "8af9eccf9d2399979429e54bf598a67f69673e4692112f4a495f880e9ea84731",
    "valve1/4.csv": "0f049378e76618a161836876484725d8205bf858919c3776ed94679ed81b859e",
    "valve1/5.csv": "a41f71c3fe0ee765879f61a725b474e99850cbff9b8ca0900c46303e73e71adb",
    "valve1/6.csv": "f5136c0614c4a4667b60b6386a625ef29c7258d11ff82711529dcd61ca9ffb98",
    "valve1/7.csv": "0978e0bf41cc40449b1aa11d5e6c7a8607f45717e730b733d927524949b7ff37",
    "valve1/8.csv": "aae2971e604011b7b91a01deeb1bbdfe6f91c2a1d89a34019b6a039324b3de42",
    "valve1/9.csv": "2b755c9b6a13aa617ad956176ee52dfb049e028ece5c1511af0833df891398e8",
    "valve1/10.csv": "222005e48291677242f48dcb637f44c205beead30f8990d8154bc7d003e1e331",
    "valve1/11.csv": "edf8fb8d057c087ddbd37711411f45308d9cf519f30f1a1fab13cf9dfed2c6ab",
    "valve1/12.csv": "e1750cb01b9e4033591045480c402fd4b90433b2f531a770fa1dbd751fa9d616",
    "valve1/13.csv": "50235d160941ac6a7fac968e805e027f365b1b0b08faf13bae6231f742b9a32f",
    "valve1/14.csv": "f86abfe6e386a517988acfa0e218369e8cf8be74515ea6b81661aa23e30ea729",
    "valve1/15.csv": "370953cbbf401dcb100f15743425dae2f9d52edebbc22ffd03f299f7721ce3ed",
    "valve2/0.csv": "cda7215c6712099a07ef57183e287e80dba4317d1ed2c6400ffef68be6127966",
    "valve2/1.csv": "ae6642f9fb856e425ed2412ee15f5f5fed324a7bcc30f16a413293852cb39bfe",
    "valve2/2.csv": "0e6f376764431846710f5a2d852ec4ec8cc795a4aeae4cc4dd3188b1f83cc760",
    "valve2/3.csv": "da5834d37670c73c56ccf0006da7a61f7c32f52bfaef77c0df4e63ed8127dafe",
    "other/9.csv": "274a5e585404b391a4aba04ba076adbae81091c689ac1e963566204c26ab62d1",
    "other/11.csv": "de8491754bcec701fcd4278eeb8c2d308daea197dd8cd52dddfe84b5e55c3925",
    "other/12.csv": "6563558a1d48e763edffd2e64235eb0c7fabd3e4fd281e4d8fb5073dbc941a24",
    "other/13.csv": "7b74db55748fbc004355a6c87130868bbed8f4056a1a656bfb342efc74b7da42",
    "other/14.csv": "f35279f735fcd595d49bdd967b79c26c995a57c9266205446ce0e67e4be3cd94",
    "other/15.csv": "8c2903170d63246f396ee4abb1b826ba48daf9190bcbec3199a37f93f68b3c85",
    "other/16.csv": "823ef8b7cb225639ca32999a7a1c575de1e6dccad31f8fd2b3af2fe615d82b04",
    "other/17.csv": "593a6607a2fb2b5321b04c5287fd1450002d753fc29516eba13e6a9e1e875fb4",
    "other/18.csv": "2d4eccd0632c843d298d0426390538e9771210a8350b930b84ac63cb8f43a09c",
    "other/19.csv": "c0733f5ecb73905c8917afd613fdfb36900ff604b84bc31d0a9894f89e859072",
    "other/20.csv": "f9e892b7da69c7dea6c1981d384a9a14da4847631102e32f620f399c3ce635ca",
    "other/21.csv": "fdcd07cd21bc3c2f7d7849d6ac1b28dc28caa091502a88115251e264535edbb6",
    "other/22.csv": "15bbcb300470add00c7a06c77fec7d11c02447df81690b8bb77d5fc5e5f1dbfd",
    "other/23.csv": "2913b7362ebb762c97ab6ecc3d598f0a497d1f91704d758af9c4d710bf5ab8c1",
}

_NAB_SHA256 = {
    "artificialNoAnomaly": {
        "art_daily_no_noise": "ccb7743ac2de8ca110db4af796d11ba31a23ad448a28e353a935c15f637756bc",
        "art_daily_perfect_square_wave": "662ff0a295b81eb0ff8e81116a54a497cd6f6b07c19c7a5ea72cce494913ce62",
        "art_daily_small_noise": "c4b304229f69f108eaa024fb2406fcd4510c5c5d95cd0053e2da6989682e4e6d",
        "art_flatline": "1cc10761ddd6d55fb5f0d9cfc73610416abbb120ee14bb65eff288509a463397",
        "art_noisy": "ad455adeaf06852222500955f2aefe6bd389cc762ef68e7102ee543209c8607f",
    },
    "artificialWithAnomaly": {
        "art_daily_flatmiddle": "ea5df125947e9ee2b977ac3d341f3c2a029588862af97cae4a654fc56e838702",
        "art_daily_jumpsdown": "4af31802e87dff4b4ba3ceb21714ba9d905f7888e1f53d47cc6dd4f856f9debc",
        "art_daily_jumpsup": "f79f92b93ee4f9c10e2dc552505e8880b0c618639ed5e0f9816e044b75c26456",
        "art_daily_nojump": "65c85d1834376ed5e622f01721d478609577ea0df0a067c5a5ebe5edea03b077",
        "art_increase_spike_density": "0959d8871d5c1a3fc3120fb7421e4ef113fffb434af2889085b52aebdb69360c",
        "art_load_balancer_spikes": "99f7130e54c7c3e818df8e3bdc0974cd241914bb14a10a9c3fa7c1374125d224",
    },
    "realAdExchange": {
        "exchange-2_cpc_results": "d869ab165254f3ee77ee21fd9fab2be1d07c1f80b8133cf01bbaf2d768c2ac64",
        "exchange-2_cpm_results": "1f01b9438566d2fe1ac446faa202a395ac86db9240a1955bc1f118c8eada2a19",
        "exchange-3_cpc_results": "e70b24dba107a2589657cb3feb9ca5605b4f3f7de49ff445f32f5991bc0bdbe5",
        "exchange-3_cpm_results": "74d354a94fb1730e14b469c7c1c6e99c2ad69af53afdb85f65220bd3cf01ce4a",
        "exchange-4_cpc_results": "d4c13abd6f28594dc446f22106562ebe917fdbe76170f60a500c2a402ecc09e2",
        "exchange-4_cpm_results": "4e5c955b632145b77b93fba4a5e3bf615d47e00416e17091d64e05ae109c760e",
    },
    "realKnownCause": {
        "ambient_temperature_system_failure": "230b68ccca20f59d562afd5d24ad52939c9b784386bed0054018358bf9120581",
        "cpu_utilization_asg_misconfiguration": "58ba65dc0737cfbac11b51514476d50c438d44011232144bb8d93f392df58f9f",
        "ec2_request_latency_system_failure": "98378580aa80157e057c61d59d81daddccc6c65a2c0c800e3f01f603b8215c3f",
        "machine_temperature_system_failure": "92bf5b87fc7f9bba8ca0b7ec63ccaac8cb4a1371a258e8c29a10ae9c018d82a4",
        "nyc_taxi": "d8fa6f7f0734bf5c8be12c52a94e20a82664c397d9dec4449156bd453d32856d",
        "rogue_agent_key_hold": "47b110baa8e3636574c1033dda1cce780873647fab58223d159d4fee6f180e86",
        "rogue_agent_key_updown": "9797cfef477c13306f7a33874ab4d6cf700f8f2c7e5825a2a5bc02004370909a",
    },
}

# By name, which is also the path in the folder LIMPET_DATA and in the cache.
REMOTE_FILES: dict[str, RemoteFile] = {
    "well_log/well.txt": RemoteFile(
        f"{_TCPD_URL}/well_log/well_log.txt", "cd2a1be7dd895e92e28f00cc522d8c2721b67208ecb6ef942547b797d6dccb7a"
    ),
    "smtp/smtp_adbench.npz": RemoteFile(
        f"{_ADBENCH_URL}/Classical/34_smtp.npz", "d2569fc9bc12115419e3f5b37d19921e10e6c26e5ad1e61064cfb0fbc402dfdd"
    ),
    "thyroid/thyroid.mat": RemoteFile(
        f"{_PYOD_URL}/notebooks/data/thyroid.mat", "49155d7861b977e90808faf68343ff67a67f63090c2744d514dbb67ac68e7e33"
    ),
} | {f"skab/{name}": RemoteFile(f"{_SKAB_URL}/data/{name}", sha256) for name, sha256 in _SKAB_SHA256.items()}
REMOTE_FILES |= {
    f"nab_part/{group}/{name}.csv": RemoteFile(f"{_NAB_URL}/data/{group}/{name}.csv", sha256)
    for group, sums in _NAB_SHA256.items()
    for name, sha256 in sums.items()
}

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
    """Return the folder of downloads in the user's cache."""
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
            f"expected sha256 {sha256}, got {actual_sha256} of {len(content)} bytes. {advice}"
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
        message = f"the download of {name} is truncated or altered and was removed: expected sha256 {sha256}"
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
