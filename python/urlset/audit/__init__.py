"""A sample of the pages of a set, fetched and judged: ``audit``.

::

    rows      -->  sample      -->  fetch        -->  judge      -->  report
    loc, stratum   by stratum,      politely,         findings        estimates with
                   seeded           with limits       of a page       intervals
"""
