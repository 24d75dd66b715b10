"""HTTP server with a live monitor of many streams, an explorer of one, and the API for both."""

from limpet._optional import require_installed

require_installed("the server", "server", "fastapi", "uvicorn", "sqlalchemy", "orjson")
