"""Parts that experiments on real bytes share: each scenario runs in the simulator, and on HDFS in a lab.

| module | role |
| --- | --- |
| `scenario_files` | tables of a scenario, the length of runs, and the content of a scenario as a hash |
| `bench` | runs on clusters, under each of some policies |
| `results` | measurements of the runs of a scenario, in its folder |
| `figures` | figures of pairs of runs, with their rows and pictures |
| `rows` | rows with the values of the paper, the simulator and the cluster |
"""
