"""A daemon that speaks framed s-expressions over TCP; see README.md for its operators' page.

`sexpr` and `frames` are the codec, `server` and `connection` the sockets, `router` says which
message goes where, `pipeline` perceives, reasons and acts, `shell` holds the only way into a
shell, and the rest is what these lean on.
"""

VERSION = "0.1.0"
