"""The application: routes, pages, and what stands in front of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from crowdveil.service.api.batches import batch_routes
from crowdveil.service.api.errors import add_error_handlers
from crowdveil.service.api.health import health_routes
from crowdveil.service.api.polls import poll_routes
from crowdveil.service.api.releases import release_routes
from crowdveil.service.api.submissions import submission_routes
from crowdveil.service.destruction import destroy_on_time
from crowdveil.service.host.routes import host_routes
from crowdveil.service.middleware.body_limit import BodyLimit
from crowdveil.service.middleware.compression import Compression
from crowdveil.service.middleware.headers import SecurityHeaders
from crowdveil.service.middleware.logs import Failures, RequestLog
from crowdveil.service.middleware.rate_limit import RateLimit
from crowdveil.service.pages import add_pages
from crowdveil.service.public.routes import public_routes
from crowdveil.service.service import Service
from crowdveil.version import VERSION


def create_app(service: Service) -> FastAPI:
    """Build the application of a service. The store stays open as long as the application runs."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        destroying = asyncio.create_task(destroy_on_time(service))
        yield
        destroying.cancel()
        service.store.steps.write(service.today())
        await service.commits.close()

    app = FastAPI(
        title="crowdveil",
        version=VERSION,
        summary="A crowd guides an AI's decisions in ethical dilemmas, and no voter is exposed.",
        openapi_url="/api/openapi.json",
        docs_url=None,  # The ready-made pages load scripts from elsewhere.
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    add_error_handlers(app)
    for routes in (poll_routes, submission_routes, batch_routes, release_routes, health_routes):
        app.include_router(routes(service))
    app.include_router(host_routes(service))
    app.include_router(public_routes(service))
    add_pages(app, service)
    settings = service.settings
    # The one added last sees a request first.
    app.add_middleware(Compression)
    app.add_middleware(BodyLimit, largest_report=settings.largest_report)
    app.add_middleware(RateLimit, per_minute=settings.requests_per_minute, trusted_proxies=settings.trusted_proxies)
    app.add_middleware(Failures)
    app.add_middleware(RequestLog)
    app.add_middleware(SecurityHeaders, https=settings.behind_https)
    return app
