"""Writing one part of a job: inputs through the core to staged shards."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path

from .. import _core
from ..destination.interface import Staging
from ..errors import Error
from ..outfile import random_id
from .gzip import encoder
from .names import taken_by, taken_stems
from .part import Outcome, Part, content_name
from .plan import Plan, index_of_sets
from .source import Input
from .stamps import Stamps

#: called about ten times a second while rows are read
OnProgress = Callable[["_core.Progress", list[Input]], None]

#: the number of rejected rows is checked at commit, over all parts
ANY_REJECTS = {"share": 1.0}


class Writer:
    """Writes one part of a job.

    Args:
        stamps: what ``lastmod_from`` keeps from build to build.

    Attributes:
        outcomes: of the sets that were written so far; of a failed set, what is known.
        rejects: the reject files.
    """

    def __init__(self, plan: Plan, staging: Staging, stamps: Stamps | None = None) -> None:
        self.outcomes: list[Outcome] = []
        self.rejects: list[Path] = []
        self._plan, self._staging, self._stamps = plan, staging, stamps
        self._seen = _core.Seen()
        # stems that the values of another set cannot have
        self._taken = taken_stems([table.options for table in plan.sets], index_of_sets(plan.sets))

    def write(self, inputs: Sequence[list[Input]], on_progress: OnProgress | None = None) -> Part:
        """Writes the shards of all sets.

        Args:
            inputs: of each set; closed as soon as they were read.

        Raises:
            Error: those of the core, or of closing an input.
        """
        for number, inputs_of_set in enumerate(inputs):
            self._write_set(number, inputs_of_set, on_progress)
        names: dict[str, str] = {}
        # otherwise the core has named them
        if self._plan.job is not None and self._plan.destination.name_salt is None:
            for number, outcome in enumerate(self.outcomes):
                self.outcomes[number] = self._with_content_names(outcome, names)
        sizes = self._staging.sizes
        if sizes:
            self.outcomes = [outcome.sized(sizes) for outcome in self.outcomes]
        rejects = [path for path in self.rejects if path.exists()]
        kept = self._staging.complete(names, rejects)
        return Part(self._plan.job or "", random_id(), tuple(self.outcomes), tuple(kept))

    def _write_set(
        self, number: int, inputs_of_set: list[Input], on_progress: OnProgress | None
    ) -> None:
        plan, staging = self._plan, self._staging
        options = plan.sets[number].options
        progress = _core.Progress()
        tick = (lambda: on_progress(progress, inputs_of_set)) if on_progress is not None else None
        rejects = staging.scratch / f"rejects-{number}.new"
        self.rejects.append(rejects)
        settings = plan.settings[number] | {"taken": self._taken}
        if plan.job is not None:
            settings["max_rejects"] = ANY_REJECTS
        try:
            # the only call of the core that builds; the destination decides where it writes
            text = _core.build(
                json.dumps(settings),
                [(one.name, one.format, one.handle, one.gaps) for one in inputs_of_set],
                staging.sink(),
                rejects,
                progress,
                self._seen,
                encoder=encoder(options.level) if options.gzip else None,
                live=plan.live,
                tick=tick,
                lastmod=self._stamps.files if self._stamps is not None else None,
            )
        except Error as error:
            outcome = getattr(error, "outcome", None)
            if outcome is not None:  # the rejected rows, if they were too many
                self.outcomes.append(Outcome.of_core(json.loads(outcome)))
            else:
                self.outcomes.append(Outcome.unfinished(progress.rows))
            raise
        finally:
            while inputs_of_set:
                inputs_of_set.pop(0).close()
        content = json.loads(text)
        if self._stamps is not None:
            self._stamps.changes = content.get("lastmod")
        outcome = Outcome.of_core(content)
        self._taken += taken_by(group.stem for group in outcome.groups)
        self.outcomes.append(outcome)

    def _with_content_names(self, outcome: Outcome, names: dict[str, str]) -> Outcome:
        """The outcome with content names.

        Args:
            names: receives the shards to keep, with their final names; not those that are live.
        """
        shards = []
        for shard in outcome.shards:
            named = replace(shard, path=content_name(shard))
            live = _core.find_live(self._plan.live, named.path)
            if live is not None and live[0] == named.digest:
                named = replace(named, changed=False, compressed_bytes=live[1])
            elif shard.changed:
                names[shard.path] = named.path
            shards.append(named)
        return replace(outcome, shards=tuple(shards))


def close_all(inputs: Iterable[list[Input]]) -> None:
    """Closes the inputs that were not read; an error here would hide the first one."""
    for one in chain.from_iterable(inputs):
        with suppress(Error):
            one.close()
