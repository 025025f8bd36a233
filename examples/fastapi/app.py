"""A web service: a run is submitted, waits its turn in a queue, and is streamed to the browser.

    uvicorn app:app      and beside it, as often as needed:      python worker.py
"""

import json
import pathlib
from typing import AsyncIterator

from fastapi import FastAPI, Header, HTTPException
from fastapi.responses import FileResponse, StreamingResponse
from pydantic import BaseModel, Field

from sluice import AsyncQueue, GroupFull, QueueFull, TooLate

PAGE = pathlib.Path(__file__).with_name("index.html")
ENDS = {"completed", "failed", "cancelled", "expired"}

app = FastAPI(title="Primes")
queue = AsyncQueue("primes")


class Run(BaseModel):
    below: int = Field(gt=1, le=10_000_000)
    user: str = Field(min_length=1, max_length=64)


@app.on_event("shutdown")
async def close() -> None:
    await queue.close()


@app.get("/")
async def page() -> FileResponse:
    return FileResponse(PAGE)


@app.post("/runs", status_code=202)
async def submit(run: Run) -> dict[str, object]:
    try:
        # Refused at once if it would wait for more than a minute.
        job = await queue.add({"below": run.below}, group=run.user, max_wait=60)
    except (QueueFull, GroupFull, TooLate) as error:
        raise HTTPException(429, f"too many runs: {error}") from error
    return {"id": job.id, "position": job.position, "eta": job.eta}


@app.delete("/runs/{id}")
async def cancel(id: str) -> dict[str, str]:
    return {"outcome": await queue.cancel(id, "by its user")}


@app.get("/runs/{id}/events")
async def follow(id: str, last_event_id: int = Header(0)) -> StreamingResponse:
    """Server-sent events. A browser that reconnects says which it has seen, and gets the rest."""
    if await queue.get(id) is None:
        raise HTTPException(404, "no such run")
    return StreamingResponse(stream(id, last_event_id), media_type="text/event-stream")


async def stream(id: str, seen: int) -> AsyncIterator[str]:
    async for event in queue.events(seen or "-", ids=[id]):
        job = await queue.get(id, with_=["result"])
        if job is None:
            return
        shown = {"state": job.state, "progress": job.progress, "result": job.result,
                 "error": job.error}
        yield f"id: {event.seq}\nevent: {event.type}\ndata: {json.dumps(shown)}\n\n"
        if event.type in ENDS:
            return
