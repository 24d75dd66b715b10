"""A page to look at, and the API behind it: the explorer of one stream, the live monitor of many."""

from limpet._optional import require_installed

require_installed("the server", "server", "fastapi", "uvicorn", "sqlalchemy", "orjson")
