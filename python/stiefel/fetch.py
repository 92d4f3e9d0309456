"""python -m stiefel.fetch URL BEGIN: an HTTP GET of the bytes from BEGIN on, for `stiefel data fetch`.

core/cli/http_python.cpp starts it, describes what it prints, and ends it if the transfer stalls. It imports nothing
but the standard library.
"""

from __future__ import annotations

import http.client
import os
import string
import sys
import threading
import typing
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator

from stiefel import __version__

MOST_REDIRECTS = 10
PIECE = 1 << 16


class TooManyRedirects(Exception):
    pass


class Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a number of redirects, whatever their addresses; 308 too, which urllib knows since Python 3.11."""

    max_repeats = max_redirections = MOST_REDIRECTS + 1

    def __init__(self) -> None:
        self.count = 0

    def redirect_request(
        self, req: urllib.request.Request, fp: typing.Any, code: int, msg: str, headers: typing.Any, newurl: str
    ) -> urllib.request.Request | None:
        fp.close()  # its body may have any size
        self.count += 1
        if self.count > MOST_REDIRECTS:
            raise TooManyRedirects
        check_protocol(newurl)
        return super().redirect_request(req, fp, 302, msg, headers, newurl)

    def http_error_308(self, *words: typing.Any) -> typing.Any:
        return self.http_error_302(*words)


class AnyStatus(urllib.request.HTTPDefaultErrorHandler):
    """An error page is an answer as well."""

    def http_error_default(
        self, req: urllib.request.Request, fp: typing.Any, code: int, msg: str, hdrs: typing.Any
    ) -> typing.Any:
        return fp


def check_protocol(url: str) -> None:
    protocol = urllib.parse.urlsplit(url).scheme
    if protocol not in ("http", "https"):
        raise urllib.error.URLError(f'Protocol "{protocol}" is not supported')


def opened(url: str, begin: int) -> http.client.HTTPResponse:
    """The final response, of which no bytes have been read."""
    check_protocol(url)
    headers = {"User-Agent": f"stiefel/{__version__}"}
    if begin > 0:
        headers["Range"] = f"bytes={begin}-"
    url = urllib.parse.quote(os.fsencode(url), safe=string.punctuation)
    request = urllib.request.Request(url, headers=headers)
    response: http.client.HTTPResponse = urllib.request.build_opener(Redirects(), AnyStatus()).open(request)
    return response


def pieces(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """The body, as it comes. Raises OSError or HTTPException if it ends too early."""
    left = response.length
    while left != 0:
        piece = response.read1(PIECE if left is None else min(PIECE, left))
        if not piece and left is None:
            return
        if not piece:
            raise http.client.IncompleteRead(b"", left)
        if left is not None:
            left -= len(piece)
        yield piece


def send(line: str, data: bytes = b"") -> None:
    """Ends this process if nobody reads any more."""
    try:
        sys.stdout.buffer.write(line.encode("utf-8", "replace") + b"\n" + data)
        sys.stdout.buffer.flush()
    except OSError:
        os._exit(1)


def reason(error: BaseException) -> str:
    """Why a server cannot be reached, in one line."""
    cause = getattr(error, "reason", error)
    text = getattr(cause, "strerror", None) or str(cause)
    if isinstance(error, http.client.HTTPException):
        text = f"{type(error).__name__}: {text}"
    return " ".join(text.split()) or type(cause).__name__


def fetch(url: str, begin: int) -> str:
    """Sends the answer and the bytes, and returns how it ended."""
    try:
        response = opened(url, begin)
    except TooManyRedirects:
        return "redirects"
    except urllib.error.URLError as error:
        return f"unreachable {reason(error)}"
    except OSError:  # while it waited for the answer
        return "closed"
    except (http.client.HTTPException, ValueError) as error:
        return f"unreachable {reason(error)}"
    send(f"answer {response.status} {response.headers.get('Content-Range', '')}")
    try:
        for piece in pieces(response):
            send(f"bytes {len(piece)}", piece)
    except (OSError, http.client.HTTPException):
        return "closed"
    return "complete"


def end_with_standard_input() -> None:
    """The program holds the other end, which closes with it, however it ends."""
    while os.read(0, 1024):
        pass
    os._exit(1)


def main() -> None:
    url, begin = sys.argv[1:]
    threading.Thread(target=end_with_standard_input, daemon=True).start()
    send("fetching")
    send(f"end {fetch(url, int(begin))}")


if __name__ == "__main__":
    main()
