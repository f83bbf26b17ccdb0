"""What one call used, over all its requests."""

from __future__ import annotations

from rubric_env.judges._completion import Tokens
from rubric_env.judges.prices import Prices, cost_usd
from rubric_env.scoring.judgement import Usage


class Bill:
    """Outlives a timeout."""

    def __init__(self, model: str, prices: Prices) -> None:
        self._model = model
        self._prices = prices
        self._open = False
        self.usage = Usage()

    def sent(self) -> None:
        """A request is on its way; until it is closed nobody knows what it costs."""
        self.usage += Usage(calls=1)
        self._open = True

    def close(self, tokens: Tokens | None = None, *, worked: bool = True) -> None:
        """The request is over. `worked`: the model was at work, so that tokens which nobody counted have a cost that
        is not known; a refusal without a count costs nothing."""
        if not self._open:
            return
        self._open = False
        if tokens is not None:
            used = Usage(0, tokens.input, tokens.cached, tokens.output)
            cost = cost_usd(self._model, used, self._prices)
            self.usage += Usage(0, tokens.input, tokens.cached, tokens.output, cost)
        elif worked and cost_usd(self._model, Usage(output_tokens=1), self._prices) != 0:
            self.usage += Usage(cost_usd=None)
