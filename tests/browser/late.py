"""Holds answers of the server back, to let them arrive after what came later."""

import re
from collections.abc import Callable

from playwright.sync_api import Page


class Held:
    """Holds back the answers of requests whose address matches, from the first one on, at most `most` of them."""

    def __init__(self, page: Page, pattern: str, most: int = 1) -> None:
        self.page = page
        self.pattern = re.compile(pattern)
        self.most = most
        self.routes: list = []
        page.route(self.pattern, self._hold)

    def _hold(self, route) -> None:
        if len(self.routes) < self.most:
            self.routes.append(route)
        else:
            route.continue_()

    def during(self, action: Callable[[], object]) -> "Held":
        """Do what causes the request, and wait until the request is there."""
        with self.page.expect_request(self.pattern):
            action()
        return self

    def release(self, status: int = 0) -> None:
        """Let the answers through, or fail them with `status`; return when the page has used them."""
        for route in self.routes:
            with self.page.expect_event(
                "requestfinished", lambda done, route=route: done.url == route.request.url
            ):
                if status:
                    route.fulfill(status=status, body="{}", content_type="application/json")
                else:
                    route.continue_()
        # The page reads the answer and draws it in the tasks that follow.
        self.page.evaluate("new Promise(done => setTimeout(() => setTimeout(done, 50), 0))")
