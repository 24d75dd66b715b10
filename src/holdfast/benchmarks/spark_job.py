"""A job on Spark, to be killed: `python -m holdfast.benchmarks.spark_job FOLDER OUT CHECKPOINT` until all is read."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING

from holdfast.engines import spark as engine
from holdfast.learners import SRA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES = 2
# Logs are compacted and states written whole every few batches, so that kills hit that too.
OFTEN = {
    "spark_sql_streaming_minBatchesToRetain": "2",
    "spark_sql_streaming_stateStore_minDeltasForSnapshot": "3",
    "spark_sql_streaming_stateStore_maintenanceInterval": "1s",
    "spark_sql_streaming_fileSink_log_compactInterval": "4",
    "spark_sql_streaming_fileSource_log_compactInterval": "4",
}


def run(spark: SparkSession, folder: str, out: str, checkpoint: str) -> None:
    """Streams the files of a folder, one a micro-batch, until there are no more."""
    schema = spark.read.parquet(folder).schema
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)
    scored = engine.score(rows, "sensor", ["a", "b"], "ts", SRA(memory="compact"), checkpoint=checkpoint)
    writer = scored.writeStream.format("parquet").option("checkpointLocation", checkpoint).outputMode("append")
    writer.trigger(availableNow=True).start(out).awaitTermination()


def end_with(parent: int) -> None:
    """Ends this process when the one that started it has gone, so that nothing is left of a benchmark broken off."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    own = engine.session(CORES, spark_driver_memory="1g", **OFTEN)
    run(own, *sys.argv[1:])
    own.stop()
