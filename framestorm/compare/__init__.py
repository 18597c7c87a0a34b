"""Compare runs with runs and studies with studies: what differs, how surely, what was set otherwise, and is it worse.

Reads only what runs and studies left; `command` has the verb, the rest is loaded by it.
"""
