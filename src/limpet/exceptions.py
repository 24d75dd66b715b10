"""Errors and warnings of limpet; all errors derive from `LimpetError`."""


class LimpetError(Exception):
    """Base class of the errors of limpet."""


class InvalidInputError(LimpetError, ValueError):
    """Invalid data or parameter; the message has its name, constraint and value."""


class InvalidTypeError(LimpetError, TypeError):
    """Value of a wrong type; the message has the name, constraint and value."""


class NotFittedError(LimpetError):
    """An estimate was requested before the model was initialized."""


class CheckpointError(LimpetError):
    """A checkpoint that is corrupted, of another format, or of an unknown class."""


class DatasetError(LimpetError):
    """Unreachable, missing, truncated or altered data set; the message has a remedy."""


class MissingExtraError(LimpetError, ImportError):
    """A package of an extra is missing; the message has the command that installs it."""


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
    >>> warning = LimpetWarning("3 of 100 rows are invalid.", code="invalid", n_invalid=3)
    >>> warning.code, warning.fields
    ('invalid', {'n_invalid': 3})
    """

    def __init__(self, message: str = "", code: str = "", **fields: object) -> None:
        super().__init__(message)
        self.code, self.fields = code, fields
