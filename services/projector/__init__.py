"""The projector: folds the log into DuckDB, publishes the statistics, answers about old tasks."""
