"""Every error a user can meet: it names the column or option and the remedy, and carries no private value.

Exit codes of the command line hang on the class: 1 means that the answer is no, 2 wrong use or bad input.
"""


class UnderstudyError(Exception):
    """Base of all errors that are meant to be read by a person."""

    exit_code = 2


class SchemaError(UnderstudyError):
    """The file of public facts is wrong, incomplete, or not yet confirmed."""


class DataError(UnderstudyError):
    """The table cannot be read, or does not fit its schema."""


class OptionError(UnderstudyError):
    """An option or argument is out of range or unknown."""


class ModelFileError(UnderstudyError):
    """A model file is truncated, tampered with, or from another format."""


class BudgetError(UnderstudyError):
    """The privacy budget would be passed; nothing was released."""

    exit_code = 1


class CertificateError(UnderstudyError):
    """A certificate does not hold."""

    exit_code = 1
