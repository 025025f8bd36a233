// The package as a program uses it: by its name, with a server for tests.
import assert from 'node:assert/strict'
import { Redis } from 'ioredis'
import { Queue, Worker, json, errorsByCode, type Codec } from '@sluice/queue'
import { startServer } from '@sluice/queue/testing'

const server = await startServer({ directives: { maxmemory: '50mb' } })
const codec: Codec = json
const queue = new Queue<{ n: number }, number>('exec', { url: server.url, codec })
const worker = new Worker<{ n: number }, number>(
  'exec', ({ payload }) => payload.n + 1, { url: server.url, signals: false })
const running = worker.run()
assert.equal(await (await queue.add({ n: 1 })).result({ timeout: 20_000 }), 2)

// ioredis 6 speaks RESP3: the pushes that come between the replies of the worker
// are none of them.
const redis = new Redis(server.url)
if (/cmdstat_hello/.test(await redis.info('commandstats'))) console.log('by RESP3')
for (const quiet of ['on', 'off', 'on', 'off']) {
  await redis.call('Q.CONFIG', 'exec', 'WORKER', worker.name, 'SET', 'quiet', quiet)
}
for (let n = 2; n < 50; ++n) {
  const job = await queue.add({ n })
  await redis.call('Q.CONFIG', 'exec', 'WORKER', worker.name, 'SET', 'quiet', n % 2 ? 'on' : 'off')
  await redis.call('Q.CONFIG', 'exec', 'WORKER', worker.name, 'SET', 'quiet', 'off')
  assert.equal(await job.result({ timeout: 20_000 }), n + 1)
}
redis.disconnect()
await worker.stop()
await running
queue.close()
await server.close()
assert.throws(() => process.kill(server.pid, 0))
assert.ok(Object.keys(errorsByCode).length > 10)
await assert.rejects(startServer({ program: '/no/such/program' }), /ENOENT/)

// A server that is not stopped neither keeps the process nor outlives it.
const left = await startServer()
console.log(`left ${left.pid}`)
if (process.env['UNTIL_SIGNAL'] !== undefined) setInterval(() => undefined, 1000)
console.log('all of it holds')
