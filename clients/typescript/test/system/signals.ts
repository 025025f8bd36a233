// Two workers of one process: the handler of one does not end, and its grace is over first
// (tests/clients/typescript_test.py).
import { Worker } from '../../src/index.js'
import { newQueue, pause, plain, until, url } from './check.js'

const redis = plain()
const [hanging, ending] = [newQueue<number, void>(), newQueue<number, void>()]
const workers = [
  new Worker(hanging.name, () => new Promise(() => undefined), { url, grace: 0 }),
  new Worker(ending.name, async () => {
    await until('the other has given its job back', async () =>
      (await hanging.stats())['pending'] === 1)
    await pause(500)
  }, { url, grace: 60_000, onCompleted: () => console.log('completed') }),
]
const running = workers.map((worker) => worker.run())
for (const queue of [hanging, ending]) await queue.add(1)
await until('they run', () => workers.every((worker) => worker.active === 1))
process.kill(process.pid, 'SIGTERM')
await Promise.all(running)
redis.disconnect()
console.log('not reached: the process has ended')
await pause(60_000)
