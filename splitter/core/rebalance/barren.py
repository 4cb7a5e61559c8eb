"""Says whether spot earns nothing, and until when it rests then (R27).

`steps` asks for twins, and `placement` before a placeholder asks for a machine. Losses are counted by
`steps.losses`. Source: docs/adr/0057.
"""

from datetime import datetime, timedelta

from splitter.core.rebalance.model import Tuning
from splitter.core.split_status import RebalanceState


def is_barren(state: RebalanceState, tuning: Tuning) -> bool:
    """Say whether spot was lost so often before it had earned anything that it costs more than it saves."""
    return state.barren >= tuning.barren_losses


def rests_until(state: RebalanceState, tuning: Tuning) -> datetime | None:
    """Return until when spot is not asked for: for as long as it has earned nothing, a day at most.

    None: it does not rest. The time may be over.
    """
    if not is_barren(state, tuning) or state.last_loss is None or state.barren_since is None:
        return None
    barren_s = (state.last_loss - state.barren_since).total_seconds()
    return state.last_loss + timedelta(seconds=min(barren_s, tuning.barren_max_s))
