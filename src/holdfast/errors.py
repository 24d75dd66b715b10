"""The errors and warnings holdfast raises, all under one roof so that a caller can catch them together."""


class HoldfastError(Exception):
    """Base of every error raised by holdfast."""


class InvalidInputError(HoldfastError, ValueError):
    """Data or a setting that cannot be used; the message names what was expected and what came."""


class InvalidTypeError(HoldfastError, TypeError):
    """A value of a type that cannot be read as numbers; the message names what was expected and what came."""


class NotFittedError(HoldfastError):
    """An estimate was asked for before a single usable point had come."""


class CheckpointError(HoldfastError):
    """A checkpoint that is truncated, altered, of another format, or of a model that is not known here."""


class DatasetError(HoldfastError):
    """A data set that cannot be had: unreachable, missing, truncated or altered; the message says what to do."""


class MissingExtraError(HoldfastError, ImportError):
    """An optional part of holdfast is used whose packages are not installed; the message says how to get them."""


class HoldfastWarning(UserWarning):
    """Something the user should know about, although the work goes on."""
