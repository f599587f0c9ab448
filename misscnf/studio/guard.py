r"""The door of the studio: who may ask, for what, and what a browser may do with the answer.

The page is for the person at this machine alone. Other pages of the same browser, and other users
of the machine, can reach its port too, so every request must show that it is ours:

| what is looked at | what it keeps out |
|---|---|
| the Host: 127.0.0.1 or localhost with our port | a foreign name that was made to point here |
| a token in the first address, then a cookie of this site alone | everybody else |
| the Origin of everything that changes something | pages of other sites |

and what goes out says that nothing is loaded from elsewhere and no script stands in the page.
"""

from __future__ import annotations

import hmac
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Guard", "refused"]


def refused(sentence: str, status: int) -> Response:
    """Returns a refusal in a sentence."""
    return JSONResponse({"refused": sentence}, status_code=status)


class Guard:
    """Lets through what comes from the page of this server, opened by this person.

    Arguments:
        app: What is guarded.
        token: The secret in the address that was printed.
        port: Where the server listens.
    """

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self.app, self.token = app, token
        self.hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        self.cookie = f"misscnf-studio-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, or passes it on."""
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":
            return None

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*_headers(message["headers"]), *message["headers"]]
            await send(message)

        answer = self._answer(scope)
        return await (self.app if answer is None else answer)(scope, receive, guarded)

    def _answer(self, scope: Scope) -> Response | None:
        """Returns a refusal or the first page's cookie, None for what may pass."""
        given: dict[str, list[str]] = {}
        for key, value in scope["headers"]:
            given.setdefault(key.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        hosts = given.get("host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            return refused("this page answers to 127.0.0.1 alone; open the printed address.", 421)
        origins = given.get("origin", [])
        own = {f"http://{host}" for host in self.hosts}
        if any(origin not in own for origin in origins):
            return refused("another site has asked; only the page itself may.", 403)
        if scope["method"] not in ("GET", "HEAD") and not origins:
            return refused("a change needs to come from the page itself, with its Origin.", 403)
        if scope["path"] == "/" and scope["method"] == "GET":
            token = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
            if token and self._is_token(token):
                return self._welcome()
        if not self._has_cookie(given.get("cookie", [])):
            sentence = "the token is missing or wrong; open the address that the studio printed."
            return refused(sentence, 403)
        return None

    def _welcome(self) -> Response:
        """Returns the way to the page without the token in its address."""
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(self.cookie, self.token, httponly=True, samesite="strict", path="/")
        return answer

    def _has_cookie(self, headers: list[str]) -> bool:
        try:
            kept = SimpleCookie("; ".join(headers)).get(self.cookie)
        except CookieError:
            return False
        return kept is not None and self._is_token(kept.value)

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())


def _headers(there: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Returns the headers that every answer has, but for those that it has of its own."""
    # The page may load its own files, and no script or style that stands in a document.
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    ours = {
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "cache-control": "no-store",
    }
    own = {key.lower() for key, _ in there}
    return [
        (key.encode(), value.encode()) for key, value in ours.items() if key.encode() not in own
    ]
