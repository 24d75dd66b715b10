"""What is optional: packages that come with an extra, and what is said where they are missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec

from holdfast.errors import MissingExtraError

# By what they are imported as, where they are installed under another name.
DISTRIBUTIONS = {
    "changepoint_online": "changepoint-online",
    "confluent_kafka": "confluent-kafka",
    "nats": "nats-py",
    "paho": "paho-mqtt",
    "sklearn": "scikit-learn",
}


@contextmanager
def needed_for(purpose: str, extra: str, otherwise: str = "") -> Iterator[None]:
    """Around the imports of packages that an extra brings: says what to install where one of them is missing.

    otherwise: what else would help.

    >>> with needed_for("drawing", "plots"):
    ...     import nothing
    Traceback (most recent call last):
    holdfast.errors.MissingExtraError: drawing needs nothing, which is not installed: pip install 'holdfast[plots]'
    """
    try:
        yield
    except ImportError as error:
        name = (error.name or "").partition(".")[0]
        if isinstance(error, MissingExtraError) or name in ("", "holdfast"):
            raise
        if isinstance(error, ModuleNotFoundError):
            raise missing(purpose, extra, [name], otherwise) from None
        there = f"{purpose} needs {_called(name)}, which is there and cannot be used"  # too old, or broken
        raise MissingExtraError(f"{there} ({error}): pip install --upgrade 'holdfast[{extra}]'") from error


def require(purpose: str, extra: str, *modules: str) -> None:
    """Says what to install where one of these modules is missing; imports none of them."""
    if absent := [name for name in modules if not is_there(name)]:
        raise missing(purpose, extra, absent)


def is_there(module: str) -> bool:
    """Whether a module can be imported, as far as can be told without doing it."""
    try:
        return find_spec(module) is not None
    except ValueError:  # one that was put there by hand
        return True


def missing(purpose: str, extra: str, modules: Sequence[str], otherwise: str = "") -> MissingExtraError:
    """The error that says so.

    >>> print(missing("reproducing the paper", "reproduce", ["river", "sklearn"]))
    reproducing the paper needs river and scikit-learn, which are not installed: pip install 'holdfast[reproduce]'
    """
    names = [_called(name) for name in modules]
    listed = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    told = f"{purpose} needs {listed}, which {'is' if len(names) == 1 else 'are'} not installed"
    return MissingExtraError(f"{told}: pip install 'holdfast[{extra}]'" + (f" ({otherwise})" if otherwise else ""))


def _called(module: str) -> str:
    return DISTRIBUTIONS.get(module, module)
