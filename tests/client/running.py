"""A real server in a thread of this process, for clients and browsers that need one."""

from contextlib import contextmanager

from crowdveil.client.client import Client
from crowdveil.service.app import create_app
from crowdveil.service.poll import poll_from_dict
from crowdveil.service.server import served_here
from crowdveil.service.service import Service
from crowdveil.service.settings import ServiceSettings
from crowdveil.service.store.store import open_store
from crowdveil.simulated_voters import send_crowd


@contextmanager
def running(folder, polls):
    """Serve polls from a new SQLite database; yield the store and the address."""
    with open_store(f"sqlite:///{folder / 'crowdveil.sqlite'}") as store:
        for poll in polls:
            store.polls.add(poll)
        with served_here(create_app(Service(store, ServiceSettings()))) as address:
            yield store, address


@contextmanager
def voted(folder, polls, voters):
    """Serve polls in each of which a simulated crowd has voted; yield the store, a client and the address."""
    with running(folder, [poll_from_dict(given) for given in polls]) as (store, address), Client(address) as client:
        for given in polls:
            assert send_crowd(client, client.poll(given["name"]), voters, seed=1).stored == voters
        yield store, client, address
