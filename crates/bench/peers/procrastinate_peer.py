"""procrastinate, with one asynchronous worker."""

import asyncio
import datetime
import json
import logging
import math
import os
import sys
import time

from procrastinate import App, PsycopgConnector

ADDRESS = os.environ["PEER_DATABASE"]
WORKLOAD, COUNT = sys.argv[1], int(sys.argv[2])
LEAD_SECONDS = 8
PATIENCE_SECONDS = 300
AT_ONCE = 20

app = App(connector=PsycopgConnector(conninfo=ADDRESS, min_size=2, max_size=10))
starts = []


@app.task(name="nothing")
async def nothing():
    starts.append(time.time())


async def work():
    await app.run_worker_async(
        concurrency=AT_ONCE,
        fetch_job_polling_interval=0.5,
        delete_jobs="successful",
        install_signal_handlers=False,
    )


def tell(seconds, late):
    line = dict(workload=WORKLOAD, peer="procrastinate 3.10.0", config=f"{AT_ONCE} at once, poll 500 ms", runs=COUNT)
    line.update(runs_per_s=None, p50_ms=None, p99_ms=None, max_ms=None)
    if seconds:
        line["runs_per_s"] = round(COUNT / seconds, 3)
    if late:
        late = sorted(late)
        at = lambda share: round(late[max(1, math.ceil(share * len(late))) - 1] * 1000, 3)
        line.update(p50_ms=at(0.5), p99_ms=at(0.99), max_ms=at(1), also={"first_ms": at(0)})
    print(json.dumps(line), flush=True)


async def main():
    async with app.open_async():
        if not await app.check_connection_async():
            await app.schema_manager.apply_schema_async()
        query = app.connector.execute_query_one_async
        due = time.time() + LEAD_SECONDS if WORKLOAD == "late" else None
        at = datetime.datetime.fromtimestamp(due, datetime.timezone.utc) if due else None
        task = nothing.configure(schedule_at=at) if at else nothing
        for begin in range(0, COUNT, 2_000):
            await task.batch_defer_async(*[{} for _ in range(begin, min(COUNT, begin + 2_000))])
        # As the others get it: without it the server knows nothing of what was just written.
        await app.connector.execute_query_async("analyze procrastinate_jobs")
        began = time.time()
        worker = asyncio.create_task(work())
        end = began + PATIENCE_SECONDS
        while len(starts) < COUNT or (await query("select count(*) as jobs from procrastinate_jobs"))["jobs"]:
            if end < time.time():
                raise TimeoutError("the jobs did not end in time")
            await asyncio.sleep(0.02)
        if due:
            tell(None, [start - due for start in starts])
        else:
            tell(time.time() - began, None)
        worker.cancel()


logging.disable(logging.CRITICAL)
asyncio.run(main())
