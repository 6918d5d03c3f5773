"""What keeps threads apart."""

from __future__ import annotations

from threading import Lock as Lock
