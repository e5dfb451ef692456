"""The routes: the page, its style and script, and the answers that it draws."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from tfdyno.core.base.codec import to_json
from tfdyno.core.base.errors import TfdynoError, UsageError
from tfdyno.core.base.language import LANGUAGES
from tfdyno.jobs.choose.market import NoOfferError
from tfdyno.jobs.project.live import LiveReader
from tfdyno.jobs.project.results import Reader
from tfdyno.ui import answers, page
from tfdyno.ui.guard import Guard, error, refusal
from tfdyno.ui.recipe import project_answer, recipe_answer
from tfdyno.ui.settings import read_settings
from tfdyno.ui.traces import NotTraced, Traces
from tfdyno.words.base.language import ENGLISH
from tfdyno.words.base.language import answering as in_language

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from pathlib import Path

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from tfdyno.core.base.language import Language
    from tfdyno.core.choose.workload import Workload
    from tfdyno.ui.settings import Settings

    Query = Iterable[tuple[str, str]]
    Answering = Callable[[Settings, Workload | None, Traces], bytes]

JSON = "application/json"


def app_of(given: Workload | None, *, folder: Path, token: str, port: int) -> ASGIApp:
    """Make the app.

    Args:
        given: The workload of the command line, which the page may have traced; None: only models
            that come with Keras and tfdyno.
        folder: Whose results are shown.
        token: That each question has to bring.
        port: That the server listens on, for the check of who asks.
    """
    traces = Traces()
    # What follows a slider at once does not wait for the ranking of all cards.
    quick, slow = _Lane(), _Lane()
    routes = [
        *(_file(path, content, kind) for path, content, kind in page.files()),
        *(Route(path, partial(_page, page.pages(path))) for path in page.PAGES),
        Route("/api/state", partial(_state, page.state(given), traces)),
    ]
    for path, answering, lane in (
        ("/api/step", answers.step_answer, quick),
        ("/api/run", answers.run_answer, slow),
        ("/api/ranking", answers.ranking_answer, slow),
    ):
        routes.append(Route(path, _asking(partial(_what_if, answering, given, traces), lane)))
    reader, live, watched = Reader(folder=folder), LiveReader(folder=folder), _Lane()
    for path, writing in (("/api/recipe", recipe_answer), ("/api/project", project_answer)):
        routes.append(Route(path, _asking(partial(_file_of, writing, given), quick)))
    routes += [
        Route("/api/results", _asking(_english(lambda _: answers.results_answer(reader)), slow)),
        Route("/api/live", _asking(_english(lambda _: answers.live_answer(live)), watched)),
        Route("/api/events", _asking(_english(partial(answers.events_answer, live)), watched)),
        Route(
            "/api/difference", _asking(_english(partial(answers.difference_answer, reader)), slow)
        ),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _no_page})
    return Guard(app, token=token, port=port)


class _Lane:
    """Questions that are answered one after the other, beside those of other lanes."""

    def __init__(self) -> None:
        self._limiter: CapacityLimiter | None = None

    @property
    def limiter(self) -> CapacityLimiter:
        """Made within the event loop."""
        if self._limiter is None:
            self._limiter = CapacityLimiter(1)
        return self._limiter


def _file(path: str, content: bytes, kind: str) -> Route:
    async def send(_request: Request) -> Response:
        return Response(content, media_type=kind)

    return Route(path, send)


async def _page(contents: dict[str, bytes], request: Request) -> Response:
    asked = request.query_params.get("lang", "")
    found = contents.get(asked) or contents[_language(request)]
    return Response(found, media_type="text/html")


def _language(request: Request) -> Language:
    """Return the first language that the browser asks for, if it is spoken here."""
    first = request.headers.get("accept-language", "")[:2].lower()
    return next((one for one in LANGUAGES if one == first), LANGUAGES[0])


async def _state(content: bytes, traces: Traces, _request: Request) -> Response:
    traces.forget()  # the page is loaded: a script may have been changed since
    return Response(content, media_type=JSON)


def _what_if(answering: Answering, given: Workload | None, traces: Traces, query: Query) -> bytes:
    return answering(read_settings(query), given, traces)


def _file_of(
    writing: Callable[[Settings, Workload | None], bytes], given: Workload | None, query: Query
) -> bytes:
    return writing(read_settings(query), given)


def _english(answering: Callable[[Query], bytes]) -> Callable[[Query], bytes]:
    """Let an answer be English: results are told so, and kept for all readers as first told."""
    return in_language(ENGLISH)(answering)


def _asking(
    answering: Callable[[Query], bytes], lane: _Lane
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            async with lane.limiter:
                if await request.is_disconnected():  # the slider went on
                    return error(499, "nobody waits for this answer")
                query = request.query_params.multi_items()
                with in_language(_language(request)):
                    content = await to_thread.run_sync(answering, query)
        except NotTraced as making:
            return Response(to_json({"tracing": making.stage}), 202, media_type=JSON)
        except NoOfferError as wrong:
            return refusal(400, str(wrong), "no_offer")
        except TfdynoError as wrong:
            return refusal(400 if isinstance(wrong, UsageError) else 500, str(wrong))
        except Exception as wrong:  # the last resort: a sentence instead of a traceback
            return _defect(request, wrong)
        return Response(content, media_type=JSON)

    return answer


async def _no_page(_request: Request, wrong: Exception) -> Response:
    status = wrong.status_code if isinstance(wrong, HTTPException) else 404
    return error(status, "there is no such page", "ask for /")


def _defect(request: Request, wrong: Exception) -> Response:
    """Say what went wrong in one sentence, here and on the terminal; no traceback."""
    what = " ".join(f"{type(wrong).__name__}: {wrong}".split())
    print(f"tfdyno: defect at {request.url.path} ({what}).", file=sys.stderr)
    return error(500, f"defect in tfdyno ({what})", "please report it")
