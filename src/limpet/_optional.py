"""Import optional packages, with a clear message when they are missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec

from limpet._format import join_names
from limpet.exceptions import MissingExtraError

# Packages whose import name differs from the name of the distribution.
DISTRIBUTION_BY_MODULE = {
    "changepoint_online": "changepoint-online",
    "confluent_kafka": "confluent-kafka",
    "nats": "nats-py",
    "paho": "paho-mqtt",
    "prometheus_client": "prometheus-client",
    "sklearn": "scikit-learn",
}


@contextmanager
def optional_import(purpose: str, extra: str, alternative: str = "") -> Iterator[None]:
    """Wrap imports of optional packages: name the extra to install if one is missing.

    The message starts with `purpose`. `extra` may be a requirement, such as "limpet-lab[bench]", and `alternative` is
    another remedy. A package that is missing, too old or broken raises `MissingExtraError`.

    >>> with optional_import("drawing", "plots"):
    ...     import nothing
    Traceback (most recent call last):
    limpet.exceptions.MissingExtraError: drawing needs nothing, which is not installed: pip install 'limpet[plots]'
    """
    try:
        yield
    except ImportError as error:
        name = (error.name or "").partition(".")[0]
        if isinstance(error, MissingExtraError) or name in ("", "limpet"):
            raise
        if isinstance(error, ModuleNotFoundError):
            raise _missing_extra_error(purpose, extra, [name], alternative) from None
        # The package is too old, or broken.
        problem = f"{purpose} needs {DISTRIBUTION_BY_MODULE.get(name, name)}, which cannot be used"
        raise MissingExtraError(f"{problem} ({error}): pip install --upgrade '{_requirement(extra)}'") from error


def require_installed(purpose: str, extra: str, *modules: str) -> None:
    """Raise `MissingExtraError` if a module is missing, without importing any."""
    if missing_modules := [name for name in modules if not _is_installed(name)]:
        raise _missing_extra_error(purpose, extra, missing_modules)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ValueError:  # a module put into sys.modules by hand
        return True


def _missing_extra_error(purpose: str, extra: str, modules: Sequence[str], alternative: str = "") -> MissingExtraError:
    """Return the error for missing packages.

    >>> print(_missing_extra_error("this benchmark", "limpet-lab[bench]", ["river", "sklearn"]))
    this benchmark needs river and scikit-learn, which are not installed: pip install 'limpet-lab[bench]'
    """
    names = [DISTRIBUTION_BY_MODULE.get(name, name) for name in modules]
    message = f"{purpose} needs {join_names(names, 'and')}, which {'is' if len(names) == 1 else 'are'} not installed"
    remedy = f"pip install '{_requirement(extra)}'" + (f" ({alternative})" if alternative else "")
    return MissingExtraError(f"{message}: {remedy}")


def _requirement(extra: str) -> str:
    return extra if "[" in extra else f"limpet[{extra}]"
