// pg-boss, fetching in batches.
import { PgBoss } from 'pg-boss'
import { LEAD, address, count, database, now, tell, until, workload } from './shared.mjs'

const settings = { batchSize: 2000, pollingIntervalSeconds: 0.5, localConcurrency: 2, burstWhenBatchFull: true }
const config = 'batches of 2,000, two at once, poll 500 ms'

const sql = await database()
await sql.run('drop schema if exists pgboss cascade')
const boss = new PgBoss({ connectionString: address, max: 10, supervise: false, schedule: false })
boss.on('error', error => console.error(error))
await boss.start()
await boss.createQueue('bench')

const due = workload === 'late' ? now() + LEAD : undefined
const jobs = Array.from({ length: count }, () => ({
  data: {}, ...(due === undefined ? {} : { startAfter: new Date(due) })
}))
for (let i = 0; i < count; i += 10_000) await boss.insert('bench', jobs.slice(i, i + 10_000))
await sql.run('vacuum analyze')

const late = []
const began = now()
await boss.work('bench', settings, async batch => {
  const at = now() - Math.floor(due ?? began)
  for (const _ of batch) late.push(at)
})
await until(() => late.length >= count)
await until(() => sql.isEmpty("select 1 from pgboss.job where state < 'completed' limit 1"))
tell('pg-boss 12.38.0', config, due === undefined ? { seconds: (now() - began) / 1000 } : { late })
process.exit(0)
