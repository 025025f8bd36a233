"""A web service: a run is submitted, waits its turn in a queue, and is streamed to the browser.

    python app.py      and beside it, as often as needed:      python worker.py
"""

import json
import os
import pathlib
import socket
from typing import AsyncIterator, Optional

import uvicorn
from fastapi import Depends, FastAPI, Header, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, StreamingResponse
from pydantic import BaseModel, Field

from sluice import AsyncQueue, errors

PAGE = pathlib.Path(__file__).with_name("index.html")
ENDS = {"completed", "failed", "cancelled", "expired", "state"}  # messages that may be the last

app = FastAPI(title="Primes")
queue = AsyncQueue("primes", patience=5)


class Run(BaseModel):
    below: int = Field(gt=1, le=10_000_000)
    user: str = Field(min_length=1, max_length=64)


class Service(uvicorn.Server):
    """It waits for all replies before it tells the app that it ends. A stream ends when the queue
    is closed."""

    async def shutdown(self, sockets: Optional[list[socket.socket]] = None) -> None:
        await queue.close()
        await super().shutdown(sockets)


@app.get("/")
async def page() -> FileResponse:
    return FileResponse(PAGE)


@app.exception_handler(errors.SluiceError)
async def answer(_: Request, error: errors.SluiceError) -> JSONResponse:
    """What the queue refuses; anything else is a fault of this program, 500."""
    if isinstance(error, errors.BadField):
        return JSONResponse({"detail": str(error)}, 400)
    if isinstance(error, (errors.QueueFull, errors.GroupFull, errors.TooLate)):
        return JSONResponse({"detail": f"too many runs: {error}"}, 429)
    if isinstance(error, (errors.Unreachable, errors.Unknown)) or (
            isinstance(error, errors.ServerError) and error.temporary):
        return JSONResponse({"detail": f"the queue is away: {error}"}, 503)
    raise error


@app.exception_handler(RequestValidationError)
async def refuse(_: Request, error: RequestValidationError) -> JSONResponse:
    """What a request lacks, as a text. What it holds need not be Unicode, and is not repeated."""
    return JSONResponse({"detail": "; ".join(f"{each['loc'][-1]}: {each['msg']}"
                                             for each in error.errors())}, 422)


@app.post("/runs", status_code=202)
async def submit(run: Run) -> dict[str, object]:
    try:
        run.user.encode()
    except UnicodeEncodeError as error:  # JSON can name one half of a pair of surrogates.
        raise HTTPException(422, f"user: {error.reason}") from None
    # Refused at once if it would wait for more than a minute.
    job = await queue.add({"below": run.below}, group=run.user, max_wait=60)
    return {"id": job.id, "position": job.position, "eta": job.eta}


async def known(id: str) -> str:
    """The id, if a run has it. Raises HTTPException otherwise."""
    if await queue.get(id) is None:
        raise HTTPException(404, "no such run")
    return id


@app.delete("/runs/{id}")
async def cancel(id: str = Depends(known)) -> dict[str, str]:
    return {"outcome": await queue.cancel(id, "by its user")}


@app.get("/runs/{id}/events")
async def follow(
    id: str = Depends(known), last_event_id: int = Header(0, ge=0, lt=2**63),
) -> StreamingResponse:
    """Server-sent events. A browser that reconnects says which it has seen, and gets the rest."""
    return StreamingResponse(stream(id, last_event_id), media_type="text/event-stream")


async def heard(id: str, seen: int) -> AsyncIterator[tuple[str, str]]:
    """What a message begins with, and its type: the state as it is now, which tells an end whose
    event is no longer kept, then each event after `seen`."""
    yield "", "state"
    async for event in queue.events(seen or "-", ids=[id]):
        yield f"id: {event.seq}\n", event.type


async def stream(id: str, seen: int) -> AsyncIterator[str]:
    try:
        async for head, type in heard(id, seen):
            job = await queue.get(id, with_=["result"])
            if job is None:
                return
            shown = {"state": job.state, "progress": job.progress, "result": job.result,
                     "error": job.error}
            yield f"{head}event: {type}\ndata: {json.dumps(shown)}\n\n"
            if job.ended and type in ENDS:
                return
    except errors.Trimmed:
        yield "id:\n\n"  # The browser forgets its number, and comes again for what is kept.
    except errors.Unreachable:
        return  # The browser comes again.


if __name__ == "__main__":
    Service(uvicorn.Config(app, port=int(os.environ.get("PORT", "8000")))).run()
