"""The HTTP API, which OpenAPI describes at /api/openapi.json."""
