"""Where work runs: this process, local processes or a Dask cluster."""
