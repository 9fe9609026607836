"""A real server in a thread of this process, for clients and browsers that need one."""

import threading
import time
from contextlib import contextmanager

import uvicorn

from crowdveil.service.app import create_app
from crowdveil.service.service import Service
from crowdveil.service.settings import Settings
from crowdveil.service.store.store import open_store


@contextmanager
def running(folder, polls):
    """Serve polls from a new SQLite database; yield the store and the address."""
    with open_store(f"sqlite:///{folder / 'crowdveil.sqlite'}") as store:
        for poll in polls:
            store.polls.add(poll)
        server = uvicorn.Server(uvicorn.Config(create_app(Service(store, Settings())), port=0, log_level="error"))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.02)
        yield store, f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        server.should_exit = True
        thread.join(timeout=60)
