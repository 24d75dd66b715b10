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
    """A condition the user should know about; the work continues.

    Parameters
    ----------
    message : str
        The condition, in one sentence.
    code : str
        A stable name of the kind of condition, such as "invalid" or "locked_out".
    **fields : object
        The values in the message by name.

    Examples
    --------
    >>> warning = LimpetWarning("3 of 100 rows could not be used", code="invalid", n_invalid=3)
    >>> warning.code, warning.fields
    ('invalid', {'n_invalid': 3})
    """

    def __init__(self, message: str = "", code: str = "", **fields: object) -> None:
        super().__init__(message)
        self.code, self.fields = code, fields
