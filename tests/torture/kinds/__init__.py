"""The kinds of attack: each module has a function ``run(case)`` that raises ``Failed``.

A further kind is a further module here. It takes all its random choices from ``case.rng``, writes
to ``case.folder`` alone, and starts processes by ``case.urlset`` or ``case.start``, which end them.
A module may have a number ``WEIGHT``: how many of its cases run in a round; 1 without it.
"""
