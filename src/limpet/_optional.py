"""What is optional: packages that come with an extra, and what is said where they are missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec

from limpet.exceptions import MissingExtraError

# By what they are imported as, where they are installed under another name.
DISTRIBUTION_BY_MODULE = {
    "changepoint_online": "changepoint-online",
    "confluent_kafka": "confluent-kafka",
    "nats": "nats-py",
    "paho": "paho-mqtt",
    "sklearn": "scikit-learn",
}


@contextmanager
def optional_import(purpose: str, extra: str, alternative: str = "") -> Iterator[None]:
    """Around the imports of packages that an extra brings: says what to install where one of them is missing.

    otherwise: what else would help.

    >>> with needed_for("drawing", "plots"):
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
            raise missing_extra_error(purpose, extra, [name], alternative) from None
        problem = f"{purpose} needs {_distribution_name(name)}, which is there and cannot be used"  # too old, or broken
        raise MissingExtraError(f"{problem} ({error}): pip install --upgrade 'limpet[{extra}]'") from error


def require_installed(purpose: str, extra: str, *modules: str) -> None:
    """Says what to install where one of these modules is missing; imports none of them."""
    if missing_modules := [name for name in modules if not is_installed(name)]:
        raise missing_extra_error(purpose, extra, missing_modules)


def is_installed(module: str) -> bool:
    """Whether a module can be imported, as far as can be told without doing it."""
    try:
        return find_spec(module) is not None
    except ValueError:  # one that was put there by hand
        return True


def missing_extra_error(purpose: str, extra: str, modules: Sequence[str], alternative: str = "") -> MissingExtraError:
    """The error that says so.

    >>> print(missing("reproducing the paper", "reproduce", ["river", "sklearn"]))
    reproducing the paper needs river and scikit-learn, which are not installed: pip install 'limpet[reproduce]'
    """
    names = [_distribution_name(name) for name in modules]
    name_list = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    message = f"{purpose} needs {name_list}, which {'is' if len(names) == 1 else 'are'} not installed"
    return MissingExtraError(f"{message}: pip install 'limpet[{extra}]'" + (f" ({alternative})" if alternative else ""))


def _distribution_name(module: str) -> str:
    return DISTRIBUTION_BY_MODULE.get(module, module)
