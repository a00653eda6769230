"""Ways to run effective objects: processes on this machine, or TrainJobs on a cluster."""
