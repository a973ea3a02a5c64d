"""Framed s-expressions: a codec without sockets and a client on trio.

- ``_frames.py``: :class:`FrameDecoder` and :func:`encode_frame`, bytes ↔ payload texts.
- ``_reader.py``: :func:`read_form`, text → form, bounded and never evaluating.
- ``_printer.py``: :func:`print_form`, form → text.
- ``_forms.py``: what a form is made of; :func:`plist` builds and :func:`lookup` reads messages.
- ``_tokens.py``: numbers and names, shared by reader and printer.
- ``_violation.py``: :class:`RemoteProtocolError`, the product's fault, and
  :class:`LocalProtocolError`, ours.
- ``_transcript.py``: the bytes exchanged, for failure messages.
- ``_client.py``: :func:`open_connection`.

A system under test has a codec of its own: one used on both sides would hide its own bug.

Source: CONTRACT-3-FRAMES.
"""

from suites.daemon.wire._client import Connection, Message, open_connection
from suites.daemon.wire._forms import NIL, Dotted, Form, Keyword, Quoted, Symbol, T, lookup, plist
from suites.daemon.wire._frames import FRAME_CHARACTERS, PREFIX_DIGITS, FrameDecoder, encode_frame
from suites.daemon.wire._printer import print_form
from suites.daemon.wire._reader import FORM_DEPTH, read_form
from suites.daemon.wire._transcript import Exchange, Transcript
from suites.daemon.wire._violation import LocalProtocolError, RemoteProtocolError, Violation

__all__ = [
    "FORM_DEPTH",
    "FRAME_CHARACTERS",
    "NIL",
    "PREFIX_DIGITS",
    "Connection",
    "Dotted",
    "Exchange",
    "Form",
    "FrameDecoder",
    "Keyword",
    "LocalProtocolError",
    "Message",
    "Quoted",
    "RemoteProtocolError",
    "Symbol",
    "T",
    "Transcript",
    "Violation",
    "encode_frame",
    "lookup",
    "open_connection",
    "plist",
    "print_form",
    "read_form",
]
