// The package as a program uses it: by its name, with a server for tests.
import assert from 'node:assert/strict'
import { Queue, Worker, json, errorsByCode, type Codec } from '@sluice/queue'
import { startServer } from '@sluice/queue/testing'

const server = await startServer({ directives: { maxmemory: '50mb' } })
const codec: Codec = json
const queue = new Queue<{ n: number }, number>('exec', { url: server.url, codec })
const worker = new Worker<{ n: number }, number>(
  'exec', ({ payload }) => payload.n + 1, { url: server.url, signals: false })
const running = worker.run()
assert.equal(await (await queue.add({ n: 1 })).result({ timeout: 20_000 }), 2)
await worker.stop()
await running
queue.close()
await server.stop()
assert.throws(() => process.kill(server.pid, 0))
assert.ok(Object.keys(errorsByCode).length > 10)
await assert.rejects(startServer({ program: '/no/such/program' }), /ENOENT/)
console.log('all of it holds')
