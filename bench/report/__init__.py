"""What ``make bench`` runs, keeps and shows: every bench in short form, its raw numbers, one page
with pictures. ``python -m bench.report --help``; ``docs/performance.md`` explains the results.
"""
