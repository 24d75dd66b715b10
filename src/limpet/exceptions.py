"""The errors and warnings limpet raises, all under one roof so that a caller can catch them together."""


class LimpetError(Exception):
    """Base of every error raised by limpet."""


class InvalidInputError(LimpetError, ValueError):
    """Data or a setting that cannot be used; the message names what was expected and what came."""


class InvalidTypeError(LimpetError, TypeError):
    """A value of a type that cannot be read as numbers; the message names what was expected and what came."""


class NotFittedError(LimpetError):
    """An estimate was asked for before a single usable point had come."""


class CheckpointError(LimpetError):
    """A checkpoint that is truncated, altered, of another format, or of a model that is not known here."""


class DatasetError(LimpetError):
    """A data set that cannot be had: unreachable, missing, truncated or altered; the message says what to do."""


class MissingExtraError(LimpetError, ImportError):
    """An optional part of limpet is used whose packages are not installed; the message says how to get them."""


class LimpetWarning(UserWarning):
    """Something the user should know about, although the work goes on."""
