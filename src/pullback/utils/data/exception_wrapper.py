"""Carries an exception out of another process, with its traceback as text."""

from __future__ import annotations

import traceback
from typing import NoReturn

__all__ = ["ExceptionWrapper"]


class _VerbatimMessage(str):
    """Shows its text as it is where a KeyError would show the repr, line breaks escaped."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An exception that can be pickled whatever it is: its type, and the text of its traceback.

    `where` completes the sentence "Caught ValueError ...", as in "in DataLoader worker process 0".
    """

    def __init__(self, exception: BaseException, where: str) -> None:
        self.exc_type = type(exception)
        self.exc_msg = "".join(traceback.format_exception(exception))
        self.where = where

    def reraise(self) -> NoReturn:
        """Raise an exception of the original type that shows where it came from.

        A type whose constructor does not take one message is replaced by RuntimeError.
        """
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            message = _VerbatimMessage(message)
        try:
            exception = self.exc_type(message)
        except Exception:
            exception = RuntimeError(message)
        raise exception
