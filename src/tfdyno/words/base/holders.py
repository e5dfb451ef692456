"""Who holds a card, told in another language: errors and records have it in English."""

from __future__ import annotations

from tfdyno.words.base.language import retold, say, say_later

HOLDERS = (
    say_later("{card} has {free} of {total} of memory free: the driver does not tell which "
              "processes hold the rest"),
    say_later("{card} has {free} of {total} of memory free: no process is shown that holds the "
              "rest, so one of another container or user does"),
    say_later("{card} has {free} of {total} of memory free: {who} holds the rest"),
    say_later("{card} has {free} of {total} of memory free: {who} hold the rest"),
    say_later("The estimate of what this run takes, {low} to {high}, is more than is free"),
    say_later("The estimate of what this run takes, {low} to {high}, may be more than is free"),
    say_later("Who holds the memory of the GPU is not known: NVML does not answer ({trouble})"),
    say_later("So this run takes memory only as it needs it ({setting})"),
)  # fmt: skip
"""Sentences of a note, without their stop; those that end alike in the order of what they match."""


def holder_words(clause: str) -> str:
    """Return who holds one card, without a stop, in the language of the answer."""
    return retold(clause, HOLDERS)


def holders_words(note: str) -> str:
    """Return a note of several sentences in the language of the answer; as it is if one is new."""
    plain = note.removesuffix(".").split(". ")
    told = [holder_words(one) for one in plain]
    is_known = all(one != before for one, before in zip(told, plain, strict=True))
    return "".join(one + say(".") for one in told) if is_known else note
