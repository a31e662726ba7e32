// What the peers have in common: what they are asked, and the line that they print.
import pg from 'pg'

export const address = process.env.PEER_DATABASE
export const [workload, count] = [process.argv[2], Number(process.argv[3])]

// Milliseconds since 1970, finer than Date.now().
export const now = () => performance.timeOrigin + performance.now()
export const sleep = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))

// How long after the first jobs are written those of `late` are due.
export const LEAD = 4000

// Gives up on what has not come so long after its time.
const PATIENCE = 120_000

export async function until (isThere) {
  const end = now() + PATIENCE
  while (!(await isThere())) {
    if (now() > end) throw new Error('the jobs did not end in time')
    await sleep(2)
  }
}

export async function database () {
  const client = new pg.Client({ connectionString: address })
  await client.connect()
  return {
    run: sql => client.query(sql),
    isEmpty: async sql => (await client.query(sql)).rows.length === 0,
    end: () => client.end()
  }
}

const round = value => Math.round(value * 1000) / 1000

export function tell (peer, config, { seconds, late }) {
  const line = { workload, peer, config, runs: count, runs_per_s: null, p50_ms: null, p99_ms: null, max_ms: null }
  if (seconds) line.runs_per_s = round(count / seconds)
  if (late) {
    late.sort((a, b) => a - b)
    const at = share => round(late[Math.max(1, Math.ceil(share * late.length)) - 1])
    Object.assign(line, { p50_ms: at(0.5), p99_ms: at(0.99), max_ms: at(1), also: { first_ms: at(0) } })
  }
  console.log(JSON.stringify(line))
}
