"""HTTP server: live monitor of many streams, explorer of one, and their API."""

from limpet._optional import require_installed

require_installed("the server", "server", "fastapi", "uvicorn", "sqlalchemy", "orjson")
