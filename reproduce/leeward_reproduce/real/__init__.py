"""Parts that experiments on real bytes share: files of scenarios, and results of runs.

| module | role |
| --- | --- |
| `scenario_files` | tables of a scenario, the length of runs, and the content of a scenario as a hash |
| `results` | measurements of the runs under a seed, in the folder of their scenario |
"""
