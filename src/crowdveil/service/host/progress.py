"""A release that is being made, told line by line while it is: how many voters were read, and what came of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

from starlette.responses import Response, StreamingResponse

from crowdveil.errors import CrowdveilError
from crowdveil.service.host.request import sentence
from crowdveil.service.middleware.logs import log_failure

Line = dict[str, Any]


def told_line_by_line(work: Callable[[Callable[[int], None]], Line], total: int) -> Response:
    """Do some work in a thread of its own, and send a line of JSON for each step of it and one for its end.

    The work goes on if the browser goes away: what has been paid for is stored.
    """
    lines: SimpleQueue[Line] = SimpleQueue()

    def run() -> None:
        try:
            lines.put({"done": work(lambda read: lines.put({"read": read, "of": total}))})
        except CrowdveilError as error:
            lines.put({"wrong": sentence(str(error))})
        except Exception as error:
            log_failure(error)
            lines.put({"wrong": "A fault of the service, which has been logged."})

    def tell() -> Iterator[str]:
        threading.Thread(target=run, daemon=True).start()
        while True:
            line = lines.get()
            yield json.dumps(line) + "\n"
            if "read" not in line:
                return

    return StreamingResponse(tell(), media_type="application/x-ndjson", headers={"Cache-Control": "no-store"})
