"""Plain functions in worker threads, and how they learn that they are to stop."""

from anyio import from_thread


def stop_asked() -> bool:
    """Return False while the task of this worker thread goes on; raise once it is cancelled.

    A command that is running then is killed on the way out.
    """
    from_thread.check_cancelled()
    return False
