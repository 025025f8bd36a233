// Ten workers and some producers, while tests/clients/typescript_kill_test.py kills and freezes the
// server, until "end" comes on the standard input. Then every job has been completed, with its own
// result, and acknowledged once.
import { createInterface } from 'node:readline'
import { Queue, Worker } from '../../src/index.js'
import { pause, url } from './check.js'

const WORKERS = 10
const PRODUCERS = 8

let ended = false
let runs = 0
let lost = 0
let jobs = 0
const acknowledged = new Map<string, number>()  // how often, by the job's id

// The process ends by itself: connections and timers of the client would keep it.
const input = createInterface({ input: process.stdin })
input.on('line', (line) => {
  if (line !== 'end') return
  ended = true
  input.close()
  process.stdin.destroy()
})

const workers = Array.from({ length: WORKERS }, () =>
  new Worker<number, number>('exec', async (job, { progress, signal }) => {
    ++runs
    progress(job.attempt)
    await pause(Math.random() * 40)
    return signal.aborted ? -1 : job.payload * 2
  }, {
    url, concurrency: 3, grace: 20_000, connectTimeout: 60_000, signals: false, logger: null,
    onLost: () => ++lost,
    onCompleted: ({ id }) => acknowledged.set(id, (acknowledged.get(id) ?? 0) + 1),
  }))
const running = Promise.all(workers.map((worker) => worker.run()))
const queue = new Queue<number, number>('exec', { url, patience: 120_000 })

async function produce(first: number): Promise<void> {
  for (let n = first; !ended; n += PRODUCERS) {
    const result = await (await queue.add(n)).result({ timeout: 120_000 })
    if (result !== n * 2) throw new Error(`the result of ${n} is ${result}`)
    ++jobs
  }
}

console.log('running')
await Promise.all(Array.from({ length: PRODUCERS }, (_, first) => produce(first)))
await Promise.all(workers.map((worker) => worker.stop()))
await running
queue.close()
const twice = [...acknowledged].filter(([, times]) => times > 1)
if (twice.length > 0) throw new Error(`acknowledged twice: ${twice}`)
console.log(`${jobs} jobs, ${acknowledged.size} acknowledged, ${runs} runs, ${lost} lost`)
console.log('all of it holds')
