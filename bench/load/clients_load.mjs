// The load of bench/clients from node: JOBS jobs are added in bulk, then a worker with 50 slots and
// an empty handler processes them. LIBRARY is bullmq or sluice; BULK, for BullMQ, how many jobs
// one addBulk has. Prints a line of JSON. SLUICE_PORT is the server's port; NODE_PATH must contain
// the packages of tests/npm, and SLUICE_CLIENT is the built package of clients/typescript.
import { createRequire } from 'node:module'

const port = Number(process.env.SLUICE_PORT)
const count = Number(process.env.JOBS)
const bulk = Number(process.env.BULK)
const text = 'x'.repeat(100)
const concurrency = 50

// The time that it takes, and this process's CPU time in it.
async function measured(name, work) {
  const began = process.hrtime.bigint()
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return { [`${name}_s`]: Number(process.hrtime.bigint() - began) / 1e9,
    [`${name}_cpu_s`]: (user + system) / 1e6 }
}

async function bullmq() {
  const { Queue, Worker } = createRequire(import.meta.url)('bullmq')
  const connection = { host: '127.0.0.1', port }
  const queue = new Queue('load', { connection })
  await queue.waitUntilReady()
  const adding = await measured('add', async () => {
    for (let first = 0; first < count; first += bulk) {
      const length = Math.min(bulk, count - first)
      await queue.addBulk(Array.from({ length }, (_, at) => (
        { name: 'work', data: { n: first + at, text } })))
    }
  })
  const processing = await measured('process', () => new Promise((resolve, reject) => {
    let left = count
    const worker = new Worker('load', async () => undefined, { connection, concurrency })
    worker.on('failed', (job, error) => reject(error))
    worker.on('error', reject)
    worker.on('completed', () => --left === 0 && resolve())
  }))
  const done = await queue.getCompletedCount()
  return { ...adding, ...processing, done }
}

async function sluice() {
  const { Queue, Worker } = await import(process.env.SLUICE_CLIENT)
  const url = `redis://127.0.0.1:${port}`
  const queue = new Queue('load', { url })
  await queue.stats()
  const adding = await measured('add', async () => {
    const added = await queue.addMany(
      Array.from({ length: count }, (_, n) => ({ payload: { n, text } })))
    const refused = added.find((each) => each.status === 'rejected')
    if (refused !== undefined) throw refused.reason
  })
  const processing = await measured('process', () => new Promise((resolve, reject) => {
    let left = count
    const worker = new Worker('load', async () => undefined, {
      url, concurrency, onFailed: (job, error) => reject(error),
      onCompleted: () => --left === 0 && resolve() })
    worker.run().catch(reject)
  }))
  return { ...adding, ...processing, done: (await queue.stats()).completed }
}

const figures = await { bullmq, sluice }[process.env.LIBRARY]()
if (figures.done !== count) throw new Error(`${figures.done} of ${count} jobs have completed`)
console.log(JSON.stringify(figures))
process.exit(0)
