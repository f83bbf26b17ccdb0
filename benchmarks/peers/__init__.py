"""The survey's job through ours, the bare openai client, and other judges of rubrics: one module each.

A module has `setup(job)` (imports and objects; returns what is then timed: one `Result` a rollout) and
`message(verdicts)` (what a model that is right would say to its prompts). Every one runs in an interpreter of its own
(`python -m peers NAME JOB`), peers in the virtual environments that `make bench-peers` builds, so nothing here imports
more than the standard library before `setup`.
"""
