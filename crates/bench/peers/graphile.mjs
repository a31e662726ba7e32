// graphile-worker, with the settings that its documentation names for throughput.
import { Logger, makeWorkerUtils, run } from 'graphile-worker'
import { LEAD, address, count, database, now, tell, until, workload } from './shared.mjs'

const logger = new Logger(() => () => {})
const worker = {
  connectionString: address,
  concurrentJobs: 100,
  maxPoolSize: 10,
  pollInterval: 100,
  localQueue: { size: 1000 },
  completeJobBatchDelay: 0,
  logger
}
const config = 'localQueue 1000, 100 at once, poll 100 ms'

const utils = await makeWorkerUtils({ connectionString: address, logger })
await utils.migrate()
const sql = await database()
await sql.run('truncate graphile_worker._private_jobs')

const due = workload === 'late' ? now() + LEAD : undefined
const jobs = Array.from({ length: count }, () => ({
  identifier: 'nothing', payload: {}, runAt: due === undefined ? undefined : new Date(due)
}))
for (let i = 0; i < count; i += 10_000) await utils.addJobs(jobs.slice(i, i + 10_000))
await sql.run('vacuum analyze graphile_worker._private_jobs')

const late = []
const began = now()
const started = await run({
  preset: { worker },
  noHandleSignals: true,
  parsedCronItems: [],
  taskList: { nothing: async () => { late.push(now() - Math.floor(due ?? began)) } }
})
await until(() => late.length >= count)
await until(() => sql.isEmpty('select 1 from graphile_worker._private_jobs limit 1'))
tell('graphile-worker 0.18.0', config, due === undefined ? { seconds: (now() - began) / 1000 } : { late })
await started.stop()
process.exit(0)
